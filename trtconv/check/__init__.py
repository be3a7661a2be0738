"""The check room: an ONNX file or an engine against what the original module computed."""

from trtconv.check.room import check_model

__all__ = ["check_model"]
