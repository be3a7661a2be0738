"""An ONNX model as a file: reading, writing, the facts it states, and where its nodes come from."""
