"""ONNX Runtime: the numerics by which everything is judged."""
