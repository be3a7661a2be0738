"""ONNX Runtime's own operators (`com.microsoft`), which its optimizer and its tools write, in those of ONNX.

What they compute is described in ONNX Runtime's `docs/ContribOperators.md`.
"""
