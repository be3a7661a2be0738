"""Unique with all its outputs, where the target has outputs whose size depends on the data."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.canonical.unique import NOTE, inverse_of, problem_of

INT32, INT64 = 6, 7


def needed(target: Target) -> bool:
    """TensorRT has NonZero from 8.5 on; TensorRT-RTX refuses it."""
    return not target.is_rtx


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Unique whose values, first places or counts are used; the rule unique takes the inverse alone."""
    used = [i for i, o in enumerate(node.outputs) if o and (graph.uses(o) or o in graph.outputs)]
    if not set(used) - {2}:
        return NOT_THIS
    problem = problem_of(graph, node)
    return Skip(problem) if problem else Found((node,), partial(_build, node=node, used=used), note=NOTE)


def _build(g: Replacement, node: Node, used: list[int]) -> tuple[Value, ...]:
    x = g.reshape(node.inputs[0], -1)
    inverse = inverse_of(g, node)
    count = g.size(x, 0)
    position = g.arange(g.squeeze(count, 0))
    # [n, n]: whether the value of a column is the unique one of that row's number; rows past the last have none.
    member = g.equal(g.unsqueeze(position, 1), g.unsqueeze(inverse, 0))
    times = g.reduce("ReduceSum", g.cast(member, INT32), [1], keepdims=False)
    rows = g.squeeze(g.op("NonZero", g.greater(times, g.scalar(0, dtype=INT32))), 0)
    # Of each the first place, and the value that is there: a sum of the values would round them.
    far = g.where(member, g.unsqueeze(position, 0), count)
    first = g.gather(g.reduce("ReduceMin", far, [1], keepdims=False), rows, axis=0)
    outputs: dict[int, Callable[[], Value]] = {
        0: lambda: g.gather(x, first, axis=0),
        1: lambda: first,
        2: lambda: inverse,
        3: lambda: g.cast(g.gather(times, rows, axis=0), INT64),
    }
    return tuple(outputs[i]() if i in used else "" for i in range(len(node.outputs)))


RULE = Rule(
    name="unique-values",
    why="No TensorRT has Unique; comparisons find the first of each kind, and NonZero keeps as many as there are.",
    ops=("Unique",),
    find=find,
    needed=needed,
    before="y, indices, inverse, counts = Unique(x)",
    after="Gather(x, Gather(first place of each, NonZero(its count))) (memory: n x n)",
)
