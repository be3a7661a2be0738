"""RMSNormalization as arithmetic where the target lacks it."""

from __future__ import annotations

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT
from trtconv.rewrite.patterns.normalize import root_mean_square


def needed(target: Target) -> bool:
    """TensorRT has it from 10.15 on."""
    return target.generation < 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match an RMSNormalization whose rank and element type are known."""
    x = node.inputs[0]
    rank, dtype = graph.rank(x), graph.dtype(x)
    if rank is None or not dtype:
        return Skip("rank or element type is not known")
    axes = list(range(node.attr("axis", -1) % rank, rank))
    epsilon, compute = float(node.attr("epsilon", 1e-5)), int(node.attr("stash_type", FLOAT))
    return Found((node,), lambda g: g.mul(root_mean_square(g, x, axes, epsilon, dtype, compute), node.inputs[1]))


RULE = Rule(
    name="rms-norm",
    why="TensorRT has RMSNormalization only from 10.15 on; its arithmetic is everywhere.",
    ops=("RMSNormalization",),
    find=find,
    needed=needed,
    before="RMSNormalization(x, scale)",
    after="Mul(Div(x, Sqrt(ReduceMean(Mul(x, x)) + epsilon)), scale)",
)
