"""Conv whose weights move in size, as a gather of windows and a product: TensorRT wants their sizes when it builds."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node

INT64 = 7


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match weights that are no constant and have a dim, or channels of the input, that is not known."""
    x, weight = node.inputs[:2]
    if graph.is_constant(weight):
        return NOT_THIS
    dims, own = graph.dims(weight), graph.dims(x)
    if dims is None or own is None:
        return Skip("rank of the input or of the weights is not known")
    bias = node.input(2)
    known = [isinstance(d, int) for d in (*dims, own[1])]
    if all(known) and not bias:
        return NOT_THIS
    if all(known) and (graph.is_constant(bias) or isinstance((graph.dims(bias) or (None,))[0], int)):
        return NOT_THIS
    if node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Skip(f"the padding is automatic ({node.attr('auto_pad')})")
    if not graph.dtype(x):
        return Skip("the element type is not known")
    return Found((node,), partial(_build, node=node, count=len(dims) - 2))


def _build(b: Builder, node: Node, count: int) -> str:
    weight, bias, groups = node.inputs[1], node.input(2), int(node.attr("group", 1))
    x = node.inputs[0]
    pads = list(node.attr("pads", [0] * (2 * count)))
    if any(pads):
        x = b.op("Pad", x, b.ints(0, 0, *pads[:count], 0, 0, *pads[count:]))
    index, out = _windows(b, node, x, count)
    batch = b.op("Gather", b.shape_once(x), b.ints(0), axis=0)
    head = b.op("Gather", b.shape_once(x), b.ints(0, 1), axis=0)
    flat = b.op("Reshape", x, b.concat(head, b.ints(-1)))
    # [N, C, taps, places]: channels split into groups, those of a group joined with the taps.
    seen = b.op("Gather", flat, index, axis=2)
    places = b.reduce("ReduceProd", out, [0])
    columns = b.op("Reshape", seen, b.concat(batch, b.ints(groups, -1), places))
    filters = b.op("Gather", b.shape_once(weight), b.ints(0), axis=0)
    each = b.op("Div", filters, b.ints(groups))
    rows = b.op("Reshape", weight, b.concat(b.ints(groups), each, b.ints(-1)))
    result = b.op("Reshape", b.op("MatMul", rows, columns), b.concat(batch, filters, out))
    return b.op("Add", result, b.reshape(bias, 1, -1, *[1] * count)) if bias else result


def _windows(b: Builder, node: Node, x: str, count: int) -> tuple[str, str]:
    """Flat indices [taps, places] into the spatial axes of the padded input, and the sizes of the result."""
    strides, dilations = node.attr("strides", [1] * count), node.attr("dilations", [1] * count)
    index, sizes = "", []
    for axis in range(count):
        taps, size = b.size(node.inputs[1], axis + 2), b.size(x, axis + 2)
        reach = b.op("Mul", b.op("Sub", taps, b.ints(1)), b.ints(dilations[axis]))
        room = b.op("Div", b.op("Sub", b.op("Sub", size, reach), b.ints(1)), b.ints(strides[axis]))
        sizes.append(b.op("Add", room, b.ints(1)))
        tap = b.op("Mul", _range(b, taps), b.ints(dilations[axis]))
        place = b.op("Mul", _range(b, sizes[-1]), b.ints(strides[axis]))
        # Axes of the sum: all taps first, then all places, each in the order of the spatial axes.
        at = b.op("Add", _along(b, tap, axis, count), _along(b, place, count + axis, count))
        index = at if not index else b.op("Add", b.op("Mul", index, size), at)
    out = b.concat(*sizes)
    taps = b.reduce("ReduceProd", b.slice(b.shape_once(node.inputs[1]), b.ints(2), b.ints(2 + count), [0]), [0])
    return b.op("Reshape", index, b.concat(taps, b.ints(-1))), out


def _range(b: Builder, size: str) -> str:
    return b.op("Range", b.scalar(0, dtype=INT64), b.squeeze(size, 0), b.scalar(1, dtype=INT64))


def _along(b: Builder, values: str, axis: int, count: int) -> str:
    return b.reshape(values, *(-1 if a == axis else 1 for a in range(2 * count)))


RULE = Rule(
    name="conv-weights",
    why="TensorRT wants to know the sizes of a kernel when it builds; a product over gathered windows does not.",
    ops=("Conv",),
    find=find,
    before="Conv(x, w), w[8,1,h,w] made by the network",
    after="MatMul(Reshape(w), Gather(Reshape(x), windows)) (memory: the window's size times the result)",
)
