"""Whether what a graph decides by its sizes in FP64 is the same in FP32: at T = 3 `T * 0.1 == 0.3` is not."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.proof.joint_sizes import count_sizes, size_grids, sizes_where
from trtconv.proof.size_arithmetic import MOST_EVALUATED, SizeArithmetic
from trtconv.proof.size_elements import NotSizesError
from trtconv.rewrite.lowering.float64 import OTHER_TYPE, Narrowed, float64_nodes


def require_same_sizes(
    original: onnx.ModelProto, narrowed: Narrowed, space: ShapeSpace, specs: tuple[TensorSpec, ...], target: Target
) -> None:
    """Raise UnsupportedError where a truth or a whole number that follows from sizes is another one in FP32.

    It is evaluated at all joint sizes of the dims that it depends on; what NumPy cannot evaluate is left to the
    comparison of the whole graph.
    """
    wide, narrow = (SizeArithmetic(model.graph, specs) for model in (original, narrowed.model))
    for node in float64_nodes(original.graph):
        if node.op_type not in OTHER_TYPE:
            continue
        try:
            at = next(_differences(wide, narrow, node.output[0], space), None)
        except NotSizesError:
            continue
        if at is not None:
            sizes = " ".join(f"{name}={size}" for name, size in at.items())
            raise UnsupportedError(
                f"from {narrowed.first} on the module computes in FP64, which {target} reads as FP32 silently; "
                f"{node.op_type} '{node.output[0]}' follows from sizes and is another one then, at {sizes}",
                hint="compute it from whole numbers (10 * t == 3), or leave those sizes out of the range",
                where=narrowed.where,
            )


def _differences(
    wide: SizeArithmetic, narrow: SizeArithmetic, name: str, space: ShapeSpace
) -> Iterator[dict[str, int]]:
    """The joint sizes at which a value that is no float differs. Raises NotSizesError."""
    names = [n for n in space if n in wide.dims(name)]
    if count_sizes(space, names) > MOST_EVALUATED:
        raise NotSizesError
    for grids in size_grids(space, names):
        for one, other in zip(wide.value(name, grids, np.float32), narrow.value(name, grids, np.float32), strict=True):
            if one.dtype.kind == "f":
                return
            shape = np.broadcast_shapes(*(grid.shape for grid in grids.values()))
            yield from sizes_where(np.broadcast_to(one != other, shape), grids, 1)
