"""Elu as a Selu of scale 1 for TensorRT-RTX, which cannot build several Elus beside a recurrence."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node


def needed(target: Target) -> bool:
    """RTX 1.7 was measured to refuse two Elus between which a convolution stands, after an LSTM."""
    return target.is_rtx


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match any Elu: what else is in the part of the graph that RTX compiles at once is not known here."""
    alpha = node.attr("alpha", 1.0)
    return Found((node,), lambda g: g.op("Selu", node.inputs[0], alpha=alpha, gamma=1.0))


RULE = Rule(
    name="elu",
    why="TensorRT-RTX fails to build several Elus beside a recurrence (two inputs where it wants one); it builds Selu.",
    ops=("Elu",),
    find=find,
    needed=needed,
    before="Elu(x)",
    after="Selu(x), gamma = 1",
)
