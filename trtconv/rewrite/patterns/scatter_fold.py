"""How scattered values are folded into what they meet: the reductions of ScatterElements and ScatterND."""

from __future__ import annotations

import math

import numpy as np

from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

FLOAT16, INT64 = 10, 7
# The reduction over all updates of a place, and how its result meets the data.
FOLD = {
    "add": ("ReduceSum", "Add"),
    "max": ("ReduceMax", "Max"),
    "min": ("ReduceMin", "Min"),
    "mul": ("ReduceProd", "Mul"),
}


def neutral(g: Replacement, how: str, dtype: int) -> Value:
    """The value of the ONNX element type `dtype` that changes nothing: FP32, FP16, int32 or int64."""
    if how in ("add", "mul"):
        return g.scalar(0 if how == "add" else 1, dtype=dtype)
    low = how == "max"
    if dtype in (1, FLOAT16):
        # Not the lowest finite number, which would win over minus infinity.
        return g.scalar(-math.inf if low else math.inf, dtype=dtype)
    # TensorRT 8.6 keeps int64 in 32 bits.
    wide = dtype == INT64 and g.index.target.generation > 8
    ends = np.iinfo(np.int64 if wide else np.int32)
    number = np.asarray(ends.min if low else ends.max, np.int64 if dtype == INT64 else np.int32)
    return g.const(number)
