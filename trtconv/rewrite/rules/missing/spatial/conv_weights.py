"""Conv whose weights move in size, as a gather of windows and a product: TensorRT wants their sizes when it builds."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match weights that are not constant and have a dim, or channels of the input, that is not known."""
    x, weight = node.inputs[:2]
    if graph.is_constant(weight):
        return NOT_THIS
    dims, own = graph.dims(weight), graph.dims(x)
    if dims is None or own is None:
        return Skip("rank of the input or of the weights is not known")
    bias = node.input(2)
    is_fixed = [isinstance(d, int) for d in (*dims, own[1])]
    if all(is_fixed) and not bias:
        return NOT_THIS
    if all(is_fixed) and (graph.is_constant(bias) or isinstance((graph.dims(bias) or (None,))[0], int)):
        return NOT_THIS
    if node.attr("auto_pad", "NOTSET") not in ("NOTSET", "VALID"):
        return Skip(f"the padding is automatic ({node.attr('auto_pad')})")
    if not graph.dtype(x):
        return Skip("the element type is not known")
    return Found((node,), partial(_build, node=node, count=len(dims) - 2))


def _build(g: Replacement, node: Node, count: int) -> Value:
    weight, bias, groups = node.inputs[1], node.input(2), int(node.attr("group", 1))
    x = node.inputs[0]
    pads = list(node.attr("pads", [0] * (2 * count)))
    if any(pads):
        x = g.pad(x, g.ints(0, 0, *pads[:count], 0, 0, *pads[count:]))
    index, out = _windows(g, node, x, count)
    batch = g.gather(g.shape_of(x), g.ints(0), axis=0)
    head = g.gather(g.shape_of(x), g.ints(0, 1), axis=0)
    flat = g.reshape(x, g.concat(head, g.ints(-1)))
    # [N, C, taps, places]: channels split into groups, those of a group joined with the taps.
    patches = g.gather(flat, index, axis=2)
    places = g.reduce("ReduceProd", out, [0])
    columns = g.reshape(patches, g.concat(batch, g.ints(groups, -1), places))
    filters = g.gather(g.shape_of(weight), g.ints(0), axis=0)
    each = g.div(filters, g.ints(groups))
    rows = g.reshape(weight, g.concat(g.ints(groups), each, g.ints(-1)))
    result = g.reshape(g.matmul(rows, columns), g.concat(batch, filters, out))
    return g.add(result, g.reshape(bias, 1, -1, *[1] * count)) if bias else result


def _windows(g: Replacement, node: Node, x: Value, count: int) -> tuple[Value, Value]:
    """Flat indices [taps, places] into the spatial axes of the padded input, and the sizes of the result."""
    strides, dilations = node.attr("strides", [1] * count), node.attr("dilations", [1] * count)
    index, sizes = "", []
    for axis in range(count):
        taps, size = g.size(node.inputs[1], axis + 2), g.size(x, axis + 2)
        reach = g.mul(g.sub(taps, g.ints(1)), g.ints(dilations[axis]))
        room = g.div(g.sub(g.sub(size, reach), g.ints(1)), g.ints(strides[axis]))
        sizes.append(g.add(room, g.ints(1)))
        tap = g.mul(_range(g, taps), g.ints(dilations[axis]))
        window_start = g.mul(_range(g, sizes[-1]), g.ints(strides[axis]))
        # Axes of the sum: all taps first, then all places, each in the order of the spatial axes.
        at = g.add(_along(g, tap, axis, count), _along(g, window_start, count + axis, count))
        index = at if not index else g.add(g.mul(index, size), at)
    out = g.concat(*sizes)
    taps = g.reduce("ReduceProd", g.slice(g.shape_of(node.inputs[1]), g.ints(2), g.ints(2 + count), [0]), [0])
    return g.reshape(index, g.concat(taps, g.ints(-1))), out


def _range(g: Replacement, size: Value) -> Value:
    return g.range(g.scalar(0, dtype=INT64), g.squeeze(size, 0), g.scalar(1, dtype=INT64))


def _along(g: Replacement, values: Value, axis: int, count: int) -> Value:
    return g.reshape(values, *(-1 if a == axis else 1 for a in range(2 * count)))


RULE = Rule(
    name="conv-weights",
    why="TensorRT wants to know the sizes of a kernel when it builds; a product over gathered windows does not.",
    ops=("Conv",),
    find=find,
    before="Conv(x, w), w[8,1,h,w] made by the network",
    after="MatMul(Reshape(w), Gather(Reshape(x), windows)) (memory: the window's size times the result)",
)
