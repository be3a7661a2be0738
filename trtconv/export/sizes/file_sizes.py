"""Sizes that a file computes in floats, evaluated at all joint sizes: in FP32, as the file does, and as Python does.

`int(h * w * 0.29)` in FP32 is another whole number than in Python at few of millions of pairs. The file's arithmetic on
shapes is small, and NumPy does it for all of them at once. Not so for a row of numbers, as the places
`linspace(0, T - 1, S).long()` are, and for logarithms, whose last bit is another one in each library: there only a
comparison with the module tells, and a note says where not all sizes were compared.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.effort import Effort
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.provenance import origin_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.float_sizes import rounding_dims, rounding_nodes
from trtconv.proof.joint_sizes import count_sizes, size_grids, sizes_where
from trtconv.proof.size_arithmetic import COMPARING, INTEGERS, MOST_EVALUATED, SizeArithmetic
from trtconv.proof.size_elements import NotSizesError

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

ROUNDING = ("Floor", "Ceil", "Round")
NARROWING = frozenset(("Div", "Mod", "Max", "Min", "Where", "Not", *COMPARING))
SECONDS, LEAST_GRIDS = 2.0, 16
MOST_FOUND = 4
# Of suspects few differ. LOST is what functions of a library lose in FP32, relative to a number; where RARE or more of
# all numbers are that close to whole ones, it is not by chance.
MOST_SUSPECTS, LOST, RARE = 48, 2.0**-21, 0.2


def differing_sizes(
    graph: onnx.GraphProto, specs: Sequence[TensorSpec], space: ShapeSpace, seconds: float = SECONDS
) -> list[dict[str, int]]:
    """Joint sizes at which FP32 rounds a size to another whole number than FP64 does, by the dims it depends on.

    Of logarithms and their like, which libraries round otherwise, those at which the last bits may decide.
    Sides of an If are looked at over the whole space. Where something is computed of such a number by which many
    numbers become one (`// 8 * 8`), the first of its differences may show nowhere: those are looked for apart.
    """
    arithmetic = SizeArithmetic(graph, specs)
    effort, differing = Effort(seconds, LEAST_GRIDS), list[dict[str, int]]()
    changed: set[str] = set()
    for node in walk_nodes(graph.node):
        follows = not changed.isdisjoint(node.input)
        here: list[dict[str, int]] = []
        if _rounds(node) or (follows and node.op_type in NARROWING):
            with contextlib.suppress(NotSizesError):
                here = _differing_at(arithmetic, node, space, effort)
        if here or follows:
            changed.update(node.output)
        differing += [sizes for sizes in here if sizes not in differing]
    return differing


def _differing_at(
    arithmetic: SizeArithmetic, node: onnx.NodeProto, space: ShapeSpace, effort: Effort
) -> list[dict[str, int]]:
    """The first joint sizes at which a node gives other numbers in FP32. Raises NotSizesError."""
    names = [n for n in space if n in arithmetic.dims(node.output[0])]
    if not names or count_sizes(space, names) > MOST_EVALUATED:
        return []
    here: list[dict[str, int]] = []
    most = MOST_SUSPECTS if _rounds(node) and arithmetic.asks_library(node.output[0]) else MOST_FOUND
    for grids in size_grids(space, names):
        here += sizes_where(_differs(arithmetic, node, grids), grids, MOST_FOUND)
        if most > MOST_FOUND:
            here += sizes_where(_nearly_cut(arithmetic, node, grids), grids, most)
        if len(here) >= most or not effort.step():
            break
    return here[:most]


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
        if count_sizes(space, names) > MOST_EVALUATED or arithmetic.asks_library(node.output[0]):
            return False
        arithmetic.value(node.output[0], next(iter(size_grids(space, names))), np.float32)
    except NotSizesError:
        return False
    return True


def rounds_anything(graph: onnx.GraphProto) -> bool:
    """True when some node makes whole numbers of others; elsewhere no size differs."""
    return any(_rounds(node) for node in walk_nodes(graph.node))


def _rounds(node: onnx.NodeProto) -> bool:
    numbers = {a.name: a.i for a in node.attribute}
    # A quotient of floats by `//` is what remains without the rest.
    whole = node.op_type == "Cast" and numbers.get("to") in INTEGERS
    return node.op_type in ROUNDING or whole or (node.op_type == "Mod" and numbers.get("fmod") == 1)


def _differs(arithmetic: SizeArithmetic, node: onnx.NodeProto, grids: Mapping[str, Array]) -> Array:
    import numpy as np

    pairs = zip(*(arithmetic.value(node.output[0], grids, kind) for kind in (np.float32, np.float64)), strict=True)
    # A float that is not whole has other last bits in FP32.
    whole = ((a, b) for a, b in pairs if _rounds(node) or a.dtype.kind != "f")
    return _any(np.asarray(a.astype(np.float64) != b.astype(np.float64)) for a, b in whole)


def _nearly_cut(arithmetic: SizeArithmetic, node: onnx.NodeProto, grids: Mapping[str, Array]) -> Array:
    """Where what is rounded lies within FP32's last bits of a number at which the result jumps.

    Nowhere for numbers that lie so at most sizes: these are whole by themselves.
    """
    import numpy as np

    halves = 2.0 if node.op_type == "Round" else 1.0
    numbers = arithmetic.value(node.input[0], grids, np.float64)
    if node.op_type == "Mod":
        divisors = arithmetic.value(node.input[1], grids, np.float64)
        with np.errstate(all="ignore"):
            numbers = [n / d for n, d in zip(numbers, divisors, strict=True)] if len(numbers) == len(divisors) else []

    def near(element: Array) -> Array:
        number = element.astype(np.float64) * halves
        with np.errstate(invalid="ignore"):
            mask = np.asarray(np.abs(number - np.round(number)) <= LOST * np.abs(number))
        return mask if mask.mean() < RARE else np.zeros_like(mask)

    return _any(map(near, numbers))


def _any(masks: Iterable[Array]) -> Array:
    import numpy as np

    return functools.reduce(np.logical_or, masks, np.asarray(False))
