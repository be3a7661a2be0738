"""Nodes that compute each row by itself, or over other axes: they stay as they are."""

from __future__ import annotations

from collections.abc import Callable

import onnx_graphsurgeon as gs

from trtconv.rewrite.fixed_rows.row_count import RowCount, Rows, cannot
from trtconv.rewrite.fixed_rows.selection import valid_mask
from trtconv.rewrite.fixed_rows.walk import Walk
from trtconv.rewrite.graph.index import Node
from trtconv.rewrite.graph.operators import FLOAT

ELEMENTWISE = (
    "Abs", "Add", "And", "Cast", "Ceil", "Clip", "Cos", "Div", "Elu", "Equal", "Erf", "Exp", "Floor", "Gelu",
    "Greater", "GreaterOrEqual", "HardSigmoid", "HardSwish", "Identity", "IsInf", "IsNaN", "LeakyRelu", "Less",
    "LessOrEqual", "Log", "Max", "Mean", "Min", "Mod", "Mul", "Neg", "Not", "Or", "PRelu", "Pow", "Reciprocal", "Relu",
    "Round", "Selu", "Sigmoid", "Sign", "Sin", "Softplus", "Sqrt", "Sub", "Sum", "Tanh", "Where", "Xor",
)  # fmt: skip
BY_IMAGE = (
    "Conv", "ConvTranspose", "MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool", "BatchNormalization",
    "InstanceNormalization", "GroupNormalization", "DepthToSpace", "SpaceToDepth", "Resize", "Gemm", "Flatten",
)  # fmt: skip
ALONG = {"Softmax": -1, "LogSoftmax": -1, "LayerNormalization": -1, "LpNormalization": -1, "Hardmax": -1}
NEUTRAL = {"ReduceMax": "-inf", "ReduceMin": "inf", "ReduceSum": "0", "ReduceL1": "0", "ReduceL2": "0"}
REDUCTIONS = (*NEUTRAL, "ReduceMean", "ReduceProd", "ReduceSumSquare", "ReduceLogSumExp")
ARGUMENTS = ("ArgMax", "ArgMin")


def elementwise(walk: Walk, node: Node) -> None:
    """Operands have the same rows, or one for all."""
    states = [(n, s) for n in node.inputs if (s := walk.of(n)) is not None]
    if not states:
        _of_sizes(walk, node)
        return
    rank = walk.index.rank(node.output)
    walk.require(node, rank is not None, "makes a value of unknown rank")
    walk.require(node, not any(n in walk.sizes for n in node.inputs), "computes with the number of rows")
    from_right = {_rank(walk, n) - s.axis for n, s in states}
    counts = {id(s.count) for _, s in states}
    walk.require(node, len(from_right) == 1 and len(counts) == 1, "mixes the rows of two selections")
    right = from_right.pop()
    for name in node.inputs:
        dims = walk.index.dims(name)
        single = not name or (dims is not None and (len(dims) < right or dims[-right] == 1))
        walk.require(node, name in walk.rows or single, "combines rows with a value of another size")
    walk.keep(node, Rows((rank or 0) - right, states[0][1].count))


def _of_sizes(walk: Walk, node: Node) -> None:
    """Arithmetic of sizes: what stays the size that it is, and the smaller of it and a number."""
    if node.op in ("Identity", "Cast"):
        walk.require(node, node.op == "Identity" or node.attr("to") in (6, 7), "computes with the number of rows")
        walk.keep_sizes(node, walk.sizes[node.inputs[0]])
        return
    if node.op == "Min" and len(node.inputs) == 2:
        size = next(walk.sizes[n] for n in node.inputs if n in walk.sizes)
        limits = [walk.index.ints(n) for n in node.inputs if n not in walk.sizes]
        if len(size) == 1 and isinstance(size[0], RowCount) and limits and limits[0] is not None:
            number = limits[0][0]
            walk.keep_sizes(node, (walk.cut(size[0], walk.g.ints(number), number),))
            return
    lengths = [len(walk.sizes[n]) for n in node.inputs if n in walk.sizes]
    walk.keep_sizes(node, (None,) * max(lengths))


def _rank(walk: Walk, name: str) -> int:
    return walk.index.rank(name) or 0


def by_image(walk: Walk, node: Node) -> None:
    """Nodes that treat each element of the first axis by itself."""
    state = walk.of(node.inputs[0])
    fine = state is not None and state.axis == 0 and not any(n in walk.rows for n in node.inputs[1:])
    fine = fine and not (node.op == "Gemm" and node.attr("transA", 0)) and node.attr("axis", 1) == 1
    walk.require(node, fine, "mixes the rows of a selection")
    walk.keep(node, state)


def roi_align(walk: Walk, node: Node) -> None:
    """Regions are rows."""
    rois, images = walk.of(node.inputs[1]), walk.of(node.inputs[2])
    fine = rois is not None and images is not None and rois.axis == 0 and rois.count is images.count
    walk.require(node, fine and node.inputs[0] not in walk.rows, "takes regions and images of two selections")
    walk.keep(node, rois)


def grid_sample(walk: Walk, node: Node) -> None:
    """Points at which an image is read are rows, along any of the axes [N, places..., 2] but the first and last."""
    image, places = walk.of(node.inputs[0]), walk.of(node.inputs[1])
    if image is not None or places is None or not 0 < places.axis < _rank(walk, node.inputs[1]) - 1:
        raise cannot(node, "mixes the rows of a selection")
    # The result is [N, C, places...].
    walk.keep(node, places.at(places.axis + 1))


def matmul(walk: Walk, node: Node) -> None:
    """A product by rows of the first factor, or one for each row."""
    first, second = walk.of(node.inputs[0]), walk.of(node.inputs[1])
    ranks = [_rank(walk, n) for n in node.inputs]
    axes = [None if s is None else s.axis - r for s, r in zip((first, second), ranks, strict=True)]
    rows = first or second
    # Counted from the last one, as the axes before the last two broadcast.
    batched = all(a is None or a < -2 for a in axes)
    counts = {id(s.count) for s in (first, second) if s is not None}
    by_row = second is None and axes[0] is not None and axes[0] < -1
    if rows is None or not (by_row or (batched and len(counts) == 1 and len({*axes} - {None}) == 1)):
        raise cannot(node, "sums over the rows of a selection")
    axis = next(a for a in axes if a is not None)
    for name, rank in zip(node.inputs, ranks, strict=True):
        dims = walk.index.dims(name)
        single = rank < -axis or (dims is not None and dims[axis] == 1)
        walk.require(node, by_row or name in walk.rows or single, "combines rows with a value of another size")
    walk.keep(node, rows.at(_rank(walk, node.output) + axis))


def along(walk: Walk, node: Node) -> None:
    """Normalisation along other axes."""
    state, rank = walk.rows[node.inputs[0]], _rank(walk, node.inputs[0])
    axis = node.attr("axis", ALONG[node.op]) % max(rank, 1)
    other = state.axis < axis if node.op == "LayerNormalization" else state.axis != axis
    walk.require(node, other, "normalises over the rows of a selection")
    walk.keep(node, state)


def reduction(walk: Walk, node: Node) -> None:
    """A reduction over other axes, or over the rows with what changes nothing in those that do not count."""
    if node.inputs[0] in walk.sizes:
        walk.keep_sizes(node, (None,))
        return
    state, axes = walk.rows[node.inputs[0]], walk.index.reduced_axes(node)
    walk.require(node, axes is not None, "reduces over axes that are computed")
    keepdims = node.attr("keepdims", 1)
    if state.axis not in (axes or ()):
        before = 0 if keepdims else sum(a < state.axis for a in axes or ())
        walk.keep(node, state.at(state.axis - before))
        return
    walk.require(node, node.op in NEUTRAL, "reduces over the rows of a selection")
    _with_neutral(walk, node, float(NEUTRAL[node.op]))


def argument(walk: Walk, node: Node) -> None:
    """The index of a largest or smallest element."""
    state, rank = walk.rows[node.inputs[0]], _rank(walk, node.inputs[0])
    axis = node.attr("axis", 0) % rank
    if axis != state.axis:
        before = 0 if node.attr("keepdims", 1) else int(axis < state.axis)
        walk.keep(node, state.at(state.axis - before))
        return
    _with_neutral(walk, node, float("-inf" if node.op == "ArgMax" else "inf"))


def _with_neutral(walk: Walk, node: Node, number: float) -> None:
    """The same node on a value whose other rows hold a number."""
    replace_input(walk, node, fill(walk, node, number))
    walk.keep(node)


def replace_input(walk: Walk, node: Node, tensor: gs.Tensor) -> None:
    """Let a node that stays read another value first."""
    walk.flush()
    node.proto.input[0] = tensor.name


def fill(walk: Walk, node: Node, number: float) -> gs.Tensor:
    """The first input with a number in the rows that do not count."""
    g, name = walk.g, node.inputs[0]
    state = walk.rows[name]
    walk.require(node, walk.index.dtype(name) == FLOAT or number == 0, "of integers depends on the number of rows")
    valid = valid_mask(g, name, state.axis, state.count, _rank(walk, name))
    return g.where(valid, name, g.scalar(number, like=name))


def pad(walk: Walk, node: Node) -> None:
    """A border around other axes."""
    state, rank = walk.rows[node.inputs[0]], _rank(walk, node.inputs[0])
    pads, axes = walk.index.ints(node.inputs[1]), walk.index.ints(node.input(3)) if node.input(3) else range(rank)
    fine = pads is not None and axes is not None
    borders = {a % rank: (pads[i], pads[i + len(axes)]) for i, a in enumerate(axes)} if pads and axes else {}
    walk.require(node, fine and borders.get(state.axis, (0, 0)) == (0, 0), "pads the rows of a selection")
    walk.keep(node, state)


HANDLERS: dict[str, Callable[[Walk, Node], None]] = {
    **dict.fromkeys(ELEMENTWISE, elementwise),
    **dict.fromkeys(BY_IMAGE, by_image),
    **dict.fromkeys(ALONG, along),
    **dict.fromkeys(REDUCTIONS, reduction),
    **dict.fromkeys(ARGUMENTS, argument),
    "GridSample": grid_sample,
    "MatMul": matmul,
    "Pad": pad,
    "RoiAlign": roi_align,
}
