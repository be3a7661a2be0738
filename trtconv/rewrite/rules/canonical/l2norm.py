"""Division by the Euclidean norm, however it was written, in one form that keeps its epsilon where it was.

The sum of squares is made in FP32 also when the values are FP16 or BF16: 512 channels of size 30 already overflow
FP16, and an epsilon of 1e-10 is zero there. A scale that was multiplied in before the division comes after it.
"""

from __future__ import annotations

from functools import partial

import onnx

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.norm_forms import Norm, is_fixed, read_inverse, read_norm

HALF = (onnx.TensorProto.FLOAT16, onnx.TensorProto.BFLOAT16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match x / norm(x) and x * (1 / norm(x)), also with a scale on x or on the inverse, and LpNormalization."""
    if node.key == "LpNormalization":
        return _lp(graph, node)
    for value, norm, behind in _quotients(graph, node):
        scaled = _scaled(graph, value, norm.value)
        if scaled is None:
            continue
        scales, passed = (*scaled[0], *behind), scaled[1]
        dtype = graph.dtype(norm.value)
        if not dtype:
            return Skip("the element type is not known")
        plain = norm.canonical and node.key == "Div" and dtype not in HALF
        if plain and not any(is_fixed(graph, s) for s in scales):
            return NOT_THIS
        out = graph.dtype(value) or dtype
        if any(graph.dtype(s) != out for s in scales):
            return Skip("the element type of the scale is not that of the value")
        note = "" if norm.location != "none" else "there is no epsilon: a vector of zeros gives NaN, as it did before"
        nodes = tuple({id(n): n for n in (*norm.nodes, *passed, node)}.values())
        return Found(nodes, partial(_build, norm=norm, out=out, scales=scales), note=note)
    return NOT_THIS


def _quotients(graph: Graph, node: Node) -> list[tuple[str, Norm, tuple[str, ...]]]:
    """Each reading of the node as value over norm, and what the inverse of the norm was multiplied by."""
    if node.key == "Div":
        norm = read_norm(graph, node.inputs[1])
        return [] if norm is None else [(node.inputs[0], norm, ())]
    inverses = [(node.inputs[value], read_inverse(graph, node.inputs[other])) for value, other in ((0, 1), (1, 0))]
    return [(value, *read) for value, read in inverses if read is not None]


def _scaled(graph: Graph, value: str, base: str) -> tuple[tuple[str, ...], tuple[Node, ...]] | None:
    """How `value` follows from `base`: the factors it is multiplied by, and the nodes; None when it does not."""
    if _same(graph, value, base):
        return (), ()
    inner, views = graph.behind(value)
    product = graph.maker(inner, "Mul")
    if product is None:
        return None
    factor = next((product.inputs[1 - i] for i in (0, 1) if _same(graph, product.inputs[i], base)), None)
    return None if factor is None else ((factor,), (product, *views))


def _same(graph: Graph, value: str, other: str) -> bool:
    """The same value, seen through Identity and Cast on either side."""
    return graph.behind(value, "Identity", "Cast")[0] == graph.behind(other, "Identity", "Cast")[0]


def _build(g: Replacement, norm: Norm, out: int, scales: tuple[Value, ...] = ()) -> Value:
    kind = g.dtype(norm.value)
    value = norm.value
    if kind in HALF:
        value, kind = g.cast(norm.value, onnx.TensorProto.FLOAT), onnx.TensorProto.FLOAT
    total = g.reduce("ReduceSum", g.mul(value, value), norm.axes)
    if norm.location in ("inside", "clamp-inside"):
        total = g.op("Add" if norm.location == "inside" else "Max", total, g.scalar(norm.epsilon, dtype=kind))
    length = g.sqrt(total)
    if norm.location in ("outside", "clamp"):
        length = g.op("Add" if norm.location == "outside" else "Max", length, g.scalar(norm.epsilon, dtype=kind))
    result = g.div(value, length)
    if norm.location == "zero":
        none = g.scalar(0.0, dtype=kind)
        result = g.where(g.greater(length, none), result, none)
    result = g.cast(result, out) if out != kind else result
    for scale in scales:
        result = g.mul(result, scale)
    return result


def _lp(graph: Graph, node: Node) -> Found | Skip:
    """LpNormalization gives 0 where the norm is 0 (ONNX Runtime): of zeros, and of values whose squares underflow."""
    rank, dtype = graph.rank(node.inputs[0]), graph.dtype(node.inputs[0])
    if node.attr("p", 2) != 2:
        return NOT_THIS
    if rank is None or dtype not in (onnx.TensorProto.FLOAT, *HALF):
        return Skip("rank or element type is not known")
    norm = Norm(node.inputs[0], (node.attr("axis", -1) % rank,), "zero")
    return Found((node,), partial(_build, norm=norm, out=dtype))


RULE = Rule(
    name="l2norm",
    why="One form of x / norm(x), its epsilon where the author put it, the squares summed in FP32: FP16 overflows.",
    ops=("Div", "Mul", "LpNormalization"),
    find=find,
    before="Div(Mul(x, scale), Add(Sqrt(ReduceSum(Pow(x, 2))), 1e-10))",
    after="Mul(Div(x, Add(Sqrt(ReduceSum(Mul(x, x))), 1e-10)), scale), the norm through FP32 for half types",
    judged_as_float32=True,
    keeps_infinities=False,
)
