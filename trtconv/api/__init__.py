"""The door for notebooks and pytest: `trtconv.convert`, `check`, `load` and `assert_equal`, over the same rooms.

Importing this imports no torch, onnx or NumPy.
"""

from trtconv.api.calls import assert_equal, check, convert, load
from trtconv.api.results import Conversion, Verdict

__all__ = ["Conversion", "Verdict", "assert_equal", "check", "convert", "load"]
