"""Functions that torch's recording exporter has no ONNX form of, recorded as others that it has one of."""
