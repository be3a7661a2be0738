"""The door for notebooks and pytest: `trtconv.convert`, `check`, `load`, `assert_equal`, `sweep`, over the same rooms.

Importing this imports no torch, onnx or NumPy.
"""

from trtconv.api.calls import assert_equal, check, convert, load
from trtconv.api.results import Conversion, Verdict
from trtconv.api.sweeps import Fleet, sweep

__all__ = ["Conversion", "Fleet", "Verdict", "assert_equal", "check", "convert", "load", "sweep"]
