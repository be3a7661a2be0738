"""The check room: compares an ONNX file or an engine with what the original module computed."""

from trtconv.check.room import check_model

__all__ = ["check_model"]
