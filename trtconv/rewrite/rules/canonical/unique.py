"""Unique where only the number of values, or the place of each value among them, is asked for."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.extent import largest
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT32, INT64 = 6, 7
MOST = 4096
NUMBERS = (1, 10, 6, 7)
NOTE = "every value is compared with every other one: time and memory grow with the square of their number"
REMEDY = (
    "how many values there are depends on the data: write the module with a fixed number, "
    "such as one_hot(x, classes).sum(0) > 0 in the place of unique(x)"
)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Unique of all values used for its inverse alone, and the length of its first output."""
    if node.key in ("Shape", "Size"):
        unique = graph.maker(node.inputs[0], "Unique")
        if unique is None or unique.output != node.inputs[0]:
            return NOT_THIS
        if node.attr("start", 0) > 0:
            return NOT_THIS
        problem = problem_of(graph, unique)
        return Skip(problem) if problem else Found((unique, node), partial(_count, node=node, unique=unique), note=NOTE)
    used = [i for i, o in enumerate(node.outputs) if o and (graph.uses(o) or o in graph.outputs)]
    if used != [2]:
        # Where the size of a result may depend on the data, the rule unique-values takes the rest.
        return Skip(REMEDY) if graph.target.is_rtx and not _only_length(graph, node, used) else NOT_THIS
    problem = problem_of(graph, node)
    return Skip(problem) if problem else Found((node,), partial(_inverse, node=node), note=NOTE)


def _only_length(graph: Graph, node: Node, used: list[int]) -> bool:
    """True when of the values nothing but their number is used: then the Shape of them is the root."""
    values = node.output
    lengths = all(u.key in ("Shape", "Size") for u in graph.uses(values)) and values not in graph.outputs
    return lengths and set(used) <= {0, 2}


def problem_of(graph: Graph, node: Node) -> str:
    """Why the values of a Unique cannot be compared with each other, or nothing."""
    if node.attr("axis") is not None and graph.rank(node.inputs[0]) != 1:
        return "unique rows along an axis"
    if graph.dtype(node.inputs[0]) not in NUMBERS or graph.rank(node.inputs[0]) is None:
        return "rank or element type is not known"
    count = largest(graph, node.inputs[0])
    if count is None:
        return f"the number of values is not known to stay under {MOST}: each is compared with each other one"
    return f"{count} values would each be compared with each other one; {REMEDY}" if count > MOST else ""


def _first(g: Replacement, node: Node) -> tuple[Value, Value, Value]:
    """The values as a row, as a column, and which of them is the first of its kind, [n, n] and [n]."""
    row = g.reshape(node.inputs[0], 1, -1)
    column = g.reshape(node.inputs[0], -1, 1)
    count = g.size(column, 0)
    position = g.arange(g.squeeze(count, 0))
    before = g.less(g.unsqueeze(position, 0), g.unsqueeze(position, 1))
    again = g.cast(g.logical_and(g.equal(row, column), before), INT32)
    earlier_equals = g.reduce("ReduceSum", again, [1], keepdims=False)
    return row, column, g.equal(earlier_equals, g.scalar(0, dtype=INT32))


def _count(g: Replacement, node: Node, unique: Node) -> Value:
    _, _, first = _first(g, unique)
    return g.cast(g.reduce("ReduceSum", g.cast(first, INT32), [0], keepdims=node.op == "Shape"), INT64)


def _inverse(g: Replacement, node: Node) -> tuple[Value, ...]:
    inverse = inverse_of(g, node)
    return tuple(inverse if i == 2 else "" for i in range(len(node.outputs)))


def inverse_of(g: Replacement, node: Node) -> Value:
    """Which of the unique values each value is, [n] int64.

    That is how many distinct values are smaller, or came first where the values are not sorted.
    """
    row, column, first = _first(g, node)
    if node.attr("sorted", 1):
        ahead = g.less(row, column)
    else:
        count = g.size(column, 0)
        position = g.arange(g.squeeze(count, 0))
        same = g.equal(row, column)
        far = g.where(same, g.unsqueeze(position, 0), count)
        ahead = g.less(g.unsqueeze(position, 0), g.reduce("ReduceMin", far, [1]))
    chosen = g.cast(g.logical_and(ahead, g.unsqueeze(first, 0)), INT32)
    return g.cast(g.reduce("ReduceSum", chosen, [1], keepdims=False), INT64)


RULE = Rule(
    name="unique",
    why="No TensorRT has Unique; how many values there are, and which of them each is, follows from comparisons.",
    ops=("Unique", "Shape", "Size"),
    find=find,
    before="y, _, inverse, _ = Unique(x), of which inverse or Shape(y) is used",
    after="ReduceSum(And(Less(x[None], x[:, None]), first of its kind)) (memory: n x n)",
)
