"""TensorRT 8.6 to 11 and TensorRT-RTX."""
