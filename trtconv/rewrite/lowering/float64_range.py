"""Whether FP32 reaches as far as what a module computes in FP64: exp(100) is finite in FP64 alone."""

from __future__ import annotations

import numpy as np
import onnx

from trtconv.backends.onnxruntime.graph_runner import open_model
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.lowering.float64 import Narrowed


def require_within_float32(
    original: onnx.ModelProto, narrowed: Narrowed, space: ShapeSpace, specs: tuple[TensorSpec, ...], target: Target
) -> None:
    """Raise UnsupportedError when an output is finite in FP64 and not in FP32 at the sample point of large values.

    A check compares there too, and no engine could pass it. Inputs with a declared range stay inside it.
    """
    point = next((p for p in sample_points(space, specs) if p.values == "large"), None)
    if point is None:
        return
    feed = sample_inputs(specs, point)
    try:
        wide, narrow = (open_model(model)[0](feed) for model in (original, narrowed.model))
    except TrtconvError:
        # The comparison of the whole graph says what does not run.
        return
    for name, value in wide.items():
        lost = _lost(value, narrow[name])
        if lost:
            raise UnsupportedError(
                f"from {narrowed.first} on the module computes in FP64, which {target} reads as FP32 silently; "
                f"at {point} {lost} of {value.size} elements of output '{name}' are then beyond FP32's range (3.4e38)",
                hint="give the input a range where such values never come (x:float64[N,8]=-10:10 when exporting), or "
                "compute that part outside of the engine",
                where=narrowed.where,
            )


def _lost(wide: Array, narrow: Array) -> int:
    if wide.dtype.kind != "f" or wide.shape != narrow.shape:
        return 0
    return int(np.count_nonzero(np.isfinite(wide) & ~np.isfinite(narrow)))
