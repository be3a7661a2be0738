"""What runs or builds a model: ONNX Runtime, TensorRT, TensorRT-RTX. The only place that imports them."""
