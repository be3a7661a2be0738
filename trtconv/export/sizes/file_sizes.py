"""Sizes that a file computes in floats, evaluated at all joint sizes: in FP32, as the file does, and as Python does.

`int(h * w * 0.29)` in FP32 is another whole number than in Python at few of millions of pairs. The file's arithmetic on
shapes is small, and NumPy does it for all of them at once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.joint_sizes import count_sizes, size_grids, sizes_where
from trtconv.proof.size_arithmetic import INTEGERS, MOST_EVALUATED, NotSizesError, SizeArithmetic

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = ("Floor", "Ceil", "Round")
SECONDS, LEAST_GRIDS = 2.0, 16
MOST_FOUND = 4


def differing_sizes(
    graph: onnx.GraphProto, specs: Sequence[TensorSpec], space: ShapeSpace, seconds: float = SECONDS
) -> list[dict[str, int]]:
    """Joint sizes at which FP32 rounds a size to another whole number than FP64 does, by the dims it depends on.

    Sides of an If are looked at over the whole space.
    """
    arithmetic = SizeArithmetic(graph, specs)
    effort, differing = Effort(seconds, LEAST_GRIDS), list[dict[str, int]]()
    for node in walk_nodes(graph.node):
        if not _rounds(node):
            continue
        try:
            names = [n for n in space if n in arithmetic.dims(node.output[0])]
            if not names or count_sizes(space, names) > MOST_EVALUATED:
                continue
            here: list[dict[str, int]] = []
            for grids in size_grids(space, names):
                mask = _differs(arithmetic, node.output[0], grids)
                here += sizes_where(mask, grids, MOST_FOUND) if mask is not None else []
                if len(here) >= MOST_FOUND or not effort.step():
                    break
        except NotSizesError:
            continue
        differing += [sizes for sizes in here[:MOST_FOUND] if sizes not in differing]
    return differing


def rounds_anything(graph: onnx.GraphProto) -> bool:
    """True when some node makes whole numbers of others; elsewhere no size differs."""
    return any(_rounds(node) for node in walk_nodes(graph.node))


def _rounds(node: onnx.NodeProto) -> bool:
    to = next((a.i for a in node.attribute if a.name == "to"), 0)
    return node.op_type in ROUNDING or (node.op_type == "Cast" and to in INTEGERS)


def _differs(arithmetic: SizeArithmetic, name: str, grids: Mapping[str, Array]) -> Array | None:
    import numpy as np

    narrow = arithmetic.value(name, grids, np.float32)
    wide = arithmetic.value(name, grids, np.float64)
    mask = None
    for a, b in zip(narrow, wide, strict=True):
        other = np.asarray(a.astype(np.float64) != b.astype(np.float64))
        mask = other if mask is None else mask | other
    return mask
