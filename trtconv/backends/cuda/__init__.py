"""Device memory, streams and kernels."""
