"""ONNX to engine: profiles from the shape space, precision checked, the engine and its manifest written."""

from trtconv.build.engine import BuildResult, build_engine

__all__ = ["BuildResult", "build_engine"]
