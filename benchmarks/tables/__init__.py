"""What TensorRT takes and computes, operator by operator."""
