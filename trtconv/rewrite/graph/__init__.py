"""An ONNX graph to read and to change."""
