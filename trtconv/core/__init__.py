"""What every room shares. Nothing here imports torch, onnx, ONNX Runtime or TensorRT at module level."""
