"""The door for notebooks and pytest: the calls of `trtconv`, over the same rooms as the command line.

Importing this imports no torch, onnx or NumPy.
"""

from trtconv.api.calls import assert_equal, check, convert, load
from trtconv.api.results import Conversion, Verdict
from trtconv.api.sweeps import Fleet, sweep
from trtconv.api.tuning import Tuned, tune

__all__ = ["Conversion", "Fleet", "Tuned", "Verdict", "assert_equal", "check", "convert", "load", "sweep", "tune"]
