"""From an ONNX graph to an engine."""
