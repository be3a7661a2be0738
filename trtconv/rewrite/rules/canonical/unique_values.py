"""Unique with all its outputs, where the target has outputs whose size depends on the data."""

from __future__ import annotations

from functools import partial

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Graph, Node
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


def _build(b: Builder, node: Node, used: list[int]) -> tuple[str, ...]:
    x = b.reshape(node.inputs[0], -1)
    inverse = inverse_of(b, node)
    count = b.size(x, 0)
    place = b.op("Range", b.scalar(0, dtype=INT64), b.squeeze(count, 0), b.scalar(1, dtype=INT64))
    # [n, n]: whether the value of a column is the unique one of that row's number; rows past the last have none.
    member = b.op("Equal", b.unsqueeze(place, 1), b.unsqueeze(inverse, 0))
    times = b.reduce("ReduceSum", b.cast(member, INT32), [1], keepdims=False)
    kept = b.squeeze(b.op("NonZero", b.op("Greater", times, b.scalar(0, dtype=INT32))), 0)
    # Of each the first place, and the value that is there: a sum of the values would round them.
    far = b.op("Where", member, b.unsqueeze(place, 0), count)
    first = b.op("Gather", b.reduce("ReduceMin", far, [1], keepdims=False), kept, axis=0)
    made = {0: lambda: b.op("Gather", x, first, axis=0), 1: lambda: first, 2: lambda: inverse,
            3: lambda: b.cast(b.op("Gather", times, kept, axis=0), INT64)}  # fmt: skip
    return tuple(made[i]() if i in used else "" for i in range(len(node.outputs)))


RULE = Rule(
    name="unique-values",
    why="No TensorRT has Unique; comparisons find the first of each kind, and NonZero keeps as many as there are.",
    ops=("Unique",),
    find=find,
    needed=needed,
    before="y, indices, inverse, counts = Unique(x)",
    after="Gather(x, Gather(first place of each, NonZero(its count))) (memory: n x n)",
)
