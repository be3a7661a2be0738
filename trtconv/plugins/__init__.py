"""Each TensorRT plugin described once, and the library that holds their kernels."""
