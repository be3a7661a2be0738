"""Numbers that a file computes from sizes in floats and cuts, where not all their sizes could be compared.

Single numbers are evaluated at all joint sizes (`file_sizes.py`). Of a row, as the places
`linspace(0, T - 1, S).long()` are, one element may be cut to another place at few of thousands of pairs, and the last
bit of a logarithm is another one in each library: there only a comparison with the module tells.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.provenance import origin_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.float_sizes import rounding_dims, rounding_nodes
from trtconv.proof.joint_sizes import count_sizes, size_grids
from trtconv.proof.size_arithmetic import MOST_EVALUATED, NotSizesError, SizeArithmetic

if TYPE_CHECKING:
    import onnx


def note_uncompared(
    graph: onnx.GraphProto,
    specs: Sequence[TensorSpec],
    space: ShapeSpace,
    compared: Collection[tuple[tuple[str, int], ...]],
) -> str:
    """A line of notes on the first such number; empty without one, or where all its sizes were compared."""
    arithmetic = SizeArithmetic(graph, specs)
    unknown = [n for n in rounding_nodes(graph) if n.op_type != "Resize" and not _is_evaluated(arithmetic, n, space)]
    if not unknown:
        return ""
    dims = rounding_dims(graph, specs)
    names = [n for n in space if dims is None or n in dims]
    total = count_sizes(space, names)
    count = len({tuple(size for size in sizes if size[0] in names) for sizes in compared})
    if count >= total:
        return ""
    return (
        f"numbers are computed from sizes in floats and cut to whole ones at {origin_of(unknown[0])}, where a last bit "
        f"decides; {count:,} of {total:,} sizes of {', '.join(names)} were compared"
    )


def _is_evaluated(arithmetic: SizeArithmetic, node: onnx.NodeProto, space: ShapeSpace) -> bool:
    """True for a number of which `differing_sizes` knows what it is at all joint sizes."""
    import numpy as np

    try:
        names = [n for n in space if n in arithmetic.dims(node.output[0])]
        if count_sizes(space, names) > MOST_EVALUATED:
            return False
        if arithmetic.asks_library(node.output[0]):
            return False
        arithmetic.value(node.output[0], next(iter(size_grids(space, names))), np.float32)
    except NotSizesError:
        return False
    return True
