"""A foreign ONNX file in place of a module: what it computes at the sample points is the reference of all rooms."""

from trtconv.foreign.original import FileOriginal
from trtconv.foreign.request import ForeignRequest
from trtconv.foreign.result import ForeignResult
from trtconv.foreign.room import adopt_model
from trtconv.foreign.samples import points_for, temporary_reference

__all__ = ["FileOriginal", "ForeignRequest", "ForeignResult", "adopt_model", "points_for", "temporary_reference"]
