"""Division by the Euclidean norm, however it was written, in one form that keeps its epsilon where it was.

The sum of squares is made in FP32 also when the values are FP16 or BF16: 512 channels of size 30 already overflow
FP16, and an epsilon of 1e-10 is zero there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import onnx

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import NOT_THIS, Found, Rule, Skip

HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)
VIEWS = ("Identity", "Cast", "Expand", "Unsqueeze")


@dataclass(frozen=True)
class Norm:
    """A norm as found: of which value, over which axes, epsilon and its place, and the nodes that make it.

    `place` is `none`, `outside` (norm + eps), `inside` (sqrt(sum + eps)), `clamp` (max(norm, eps)) or `clamp-inside`
    (sqrt(max(sum, eps))).
    """

    value: str
    axes: tuple[int, ...]
    place: str = "none"
    epsilon: float = 0.0
    nodes: tuple[Node, ...] = ()
    canonical: bool = True


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match x / norm(x), x * (1 / norm(x)) and LpNormalization with p = 2."""
    if node.key == "LpNormalization":
        return _lp(graph, node)
    for value, norm in _quotients(graph, node):
        if not _same(graph, value, norm.value):
            continue
        dtype = graph.dtype(norm.value)
        if not dtype:
            return Skip("the element type is not known")
        if norm.canonical and node.key == "Div" and dtype not in HALF:
            return NOT_THIS
        note = "" if norm.place != "none" else "there is no epsilon: a vector of zeros gives NaN, as it did before"
        return Found((*norm.nodes, node), partial(_build, norm=norm, out=graph.dtype(value) or dtype), note=note)
    return NOT_THIS


def _quotients(graph: Graph, node: Node) -> list[tuple[str, Norm]]:
    """Each reading of the node as value over norm."""
    found: list[tuple[str, Norm]] = []
    if node.key == "Div":
        norm = read_norm(graph, node.inputs[1])
        return [] if norm is None else [(node.inputs[0], norm)]
    for value, other in ((0, 1), (1, 0)):
        inverse, views = graph.behind(node.inputs[other], *VIEWS)
        maker = graph.maker(inverse, "Reciprocal", "Div", "Pow")
        if maker is None:
            continue
        below = _inverted(graph, maker)
        norm = None if below is None else read_norm(graph, below)
        if maker.key == "Pow" and graph.scalar(maker.inputs[1]) == -0.5:
            norm = _root(graph, maker.inputs[0])
        if norm is not None:
            nodes = (*norm.nodes, maker, *views)
            found.append((node.inputs[value], Norm(norm.value, norm.axes, norm.place, norm.epsilon, nodes, False)))
    return found


def _inverted(graph: Graph, maker: Node) -> str | None:
    if maker.key == "Reciprocal":
        return maker.inputs[0]
    return maker.inputs[1] if maker.key == "Div" and graph.scalar(maker.inputs[0]) == 1.0 else None


def read_norm(graph: Graph, name: str) -> Norm | None:
    """A norm with what was done to its result."""
    inner, views = graph.behind(name, *VIEWS)
    node = graph.maker(inner)
    if node is None:
        return None
    if node.key in ("Add", "Max", "Clip"):
        epsilon = _bound(graph, node)
        if epsilon is None:
            return None
        norm = _bare(graph, epsilon[0])
        place = "outside" if node.key == "Add" else "clamp"
        if norm is None or norm.place != "none":
            return None
        plain = norm.canonical and node.key != "Clip" and not views
        return Norm(norm.value, norm.axes, place, epsilon[1], (*norm.nodes, node, *views), plain)
    norm = _bare(graph, inner)
    if norm is None:
        return None
    return Norm(norm.value, norm.axes, norm.place, norm.epsilon, (*norm.nodes, *views), norm.canonical and not views)


def _bound(graph: Graph, node: Node) -> tuple[str, float] | None:
    """The value and the constant of Add, Max or Clip from below; only a positive constant is an epsilon."""
    if node.key == "Clip":
        low = graph.scalar(node.input(1)) if node.input(1) else node.attr("min")
        top = graph.scalar(node.input(2)) if node.input(2) else node.attr("max", float("inf"))
        if low is None or top is None or top < 3.0e38:
            return None
        return (node.inputs[0], float(low)) if low > 0 else None
    found = graph.operand(node) if len(node.inputs) == 2 else None
    if found is None or found[1].size != 1 or float(found[1].reshape(-1)[0]) <= 0:
        return None
    return found[0], float(found[1].reshape(-1)[0])


def _bare(graph: Graph, name: str) -> Norm | None:
    """ReduceL2, or a square root of a sum of squares."""
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "ReduceL2", "Sqrt", "Pow")
    if node is None:
        return None
    if node.key == "ReduceL2":
        axes = _axes(graph, node)
        return None if axes is None else Norm(node.inputs[0], axes, nodes=(node, *views), canonical=False)
    if node.key == "Pow" and graph.scalar(node.inputs[1]) != 0.5:
        return None
    norm = _root(graph, node.inputs[0])
    if norm is None:
        return None
    plain = norm.canonical and node.key == "Sqrt" and not views
    return Norm(norm.value, norm.axes, norm.place, norm.epsilon, (*norm.nodes, node, *views), plain)


def _root(graph: Graph, name: str) -> Norm | None:
    """What stands under the root: the sum of squares, perhaps with an epsilon."""
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "Add", "Max", "Clip")
    if node is not None:
        bound = _bound(graph, node)
        norm = None if bound is None else _sum(graph, bound[0])
        if norm is None or bound is None:
            return None
        place = "inside" if node.key == "Add" else "clamp-inside"
        plain = norm.canonical and node.key != "Clip" and not views
        return Norm(norm.value, norm.axes, place, bound[1], (*norm.nodes, node, *views), plain)
    norm = _sum(graph, name)
    if norm is None:
        return None
    return Norm(norm.value, norm.axes, nodes=(*norm.nodes, *views), canonical=norm.canonical and not views)


def _sum(graph: Graph, name: str) -> Norm | None:
    name, views = graph.behind(name, *VIEWS)
    node = graph.maker(name, "ReduceSum", "ReduceSumSquare")
    axes = None if node is None else _axes(graph, node)
    if node is None or axes is None:
        return None
    if node.key == "ReduceSumSquare":
        return Norm(node.inputs[0], axes, nodes=(node, *views), canonical=False)
    squared, between = graph.behind(node.inputs[0], "Identity", "Cast")
    square = graph.maker(squared, "Mul", "Pow")
    if square is None:
        return None
    squares = square.inputs[0] == square.inputs[1] if square.key == "Mul" else graph.scalar(square.inputs[1]) == 2.0
    if not squares:
        return None
    # Exporters write vector_norm with an Abs before the square.
    value, passed = graph.behind(square.inputs[0], "Abs")
    plain = square.key == "Mul" and not (views or between or passed)
    return Norm(value, axes, nodes=(*passed, square, *between, node, *views), canonical=plain)


def _axes(graph: Graph, node: Node) -> tuple[int, ...] | None:
    """The axes; without keepdims only when the result is unsqueezed again at the same place."""
    axes = graph.reduced_axes(node)
    rank = graph.rank(node.inputs[0])
    if not axes or rank is None:
        return None
    if node.attr("keepdims", 1):
        return axes
    after = graph.uses(node.output)
    for _ in range(6):
        if len(after) != 1:
            return None
        if after[0].key == "Unsqueeze":
            put = after[0].attr("axes") or graph.ints(after[0].input(1))
            return axes if put is not None and tuple(sorted(a % rank for a in put)) == axes else None
        after = graph.uses(after[0].output)
    return None


def _same(graph: Graph, value: str, other: str) -> bool:
    """The same value, seen through Identity and Cast on either side."""
    return graph.behind(value, "Identity", "Cast")[0] == graph.behind(other, "Identity", "Cast")[0]


def _build(b: Builder, norm: Norm, out: int) -> str:
    kind = b.graph.dtype(norm.value)
    value = norm.value
    if kind in HALF:
        value, kind = b.cast(norm.value, onnx.TensorProto.FLOAT), onnx.TensorProto.FLOAT
    total = b.reduce("ReduceSum", b.op("Mul", value, value), norm.axes)
    if norm.place in ("inside", "clamp-inside"):
        total = b.op("Add" if norm.place == "inside" else "Max", total, b.scalar(norm.epsilon, dtype=kind))
    length = b.op("Sqrt", total)
    if norm.place in ("outside", "clamp"):
        length = b.op("Add" if norm.place == "outside" else "Max", length, b.scalar(norm.epsilon, dtype=kind))
    result = b.op("Div", value, length)
    return b.cast(result, out) if out != kind else result


def _lp(graph: Graph, node: Node) -> Found | Skip:
    """LpNormalization gives 0 for a vector of zeros in ONNX Runtime, which is a clamp by the least normal float."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if node.attr("p", 2) != 2:
        return NOT_THIS
    if rank is None or dtype not in (onnx.TensorProto.FLOAT, *HALF):
        return Skip("rank or element type is not known")
    norm = Norm(node.inputs[0], (node.attr("axis", -1) % rank,), "clamp", 1.1754944e-38)
    return Found((node,), partial(_build, norm=norm, out=dtype))


RULE = Rule(
    name="l2norm",
    why="One form of x / norm(x), its epsilon where the author put it, the squares summed in FP32: FP16 overflows.",
    ops=("Div", "Mul", "LpNormalization"),
    find=find,
    before="Div(x, Add(Sqrt(ReduceSum(Pow(x, 2))), 1e-10))",
    after="Div(x, Add(Sqrt(ReduceSum(Mul(x, x))), 1e-10)), through FP32 for half types",
    judged_as_float32=True,
)
