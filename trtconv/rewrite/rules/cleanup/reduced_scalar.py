"""A reduction of a tensor without axes (`x.max().mean()`) is its one element, or that element's size."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

SAME = ("ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceLogSumExp")
SIZES = ("ReduceL1", "ReduceL2")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a tensor without axes."""
    return Found((node,), partial(_build, node=node)) if graph.rank(node.inputs[0]) == 0 else NOT_THIS


def _build(g: Replacement, node: Node) -> Value:
    x = node.inputs[0]
    if node.op in SIZES:
        return g.op("Abs", x)
    if node.op == "ReduceSumSquare":
        return g.mul(x, x)
    return g.op("Log", x) if node.op == "ReduceLogSum" else g.identity(x)


RULE = Rule(
    name="reduced-scalar",
    why="No TensorRT reduces a tensor without axes: `at least 1 dimensions are required`.",
    ops=(*SAME, *SIZES, "ReduceSumSquare", "ReduceLogSum"),
    find=find,
    before="ReduceMean(x), x without axes",
    after="x",
)
