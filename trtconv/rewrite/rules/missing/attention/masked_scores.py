"""Scores of attention chosen by their mask, in place of a sum with 0 where it shows and a low number where it hides.

TensorRT 8.6.0 fuses the sum of the scores and a mask [N, 1, 1, S] with the Softmax between two products, and reads
what it adds to the rows of all batches but the first from other memory: of a Llama step with its cache 12 of 22 points
were wrong on an H200, with as many of the masks that are expanded in any way before the sum. Chosen by Where all were
right, in 0.97 to 0.99 of the time (benchmarks/results/gpu_networks_checked.json).
"""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Beside such a number FP32 keeps nothing of a score, which would have to be of its size.
LOWEST = -1e30


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Softmax(Add(MatMul(q, k), Where(mask, 0, low))), where low is -inf or a number below LOWEST."""
    total = graph.maker(node.inputs[0], "Add")
    if total is None:
        return NOT_THIS
    for scores, added in (total.inputs, total.inputs[::-1]):
        where = graph.maker(added, "Where")
        product, _ = graph.behind(scores, "Mul", "Div")
        if where is None or graph.maker(product, "MatMul") is None:
            continue
        shown, hidden = (graph.scalar(name) for name in where.inputs[1:])
        if shown is None or hidden is None or 0.0 not in (shown, hidden) or min(shown, hidden) > LOWEST:
            continue
        dims = graph.dims(where.inputs[0])
        if dims is None or len(dims) < 2 or dims[0] == 1:
            return Skip("all batches have the same mask")
        build = partial(_build, softmax=node, where=where, scores=scores, shows=shown == 0.0)
        return Found((where, total, node), build)
    return NOT_THIS


def _build(g: Replacement, *, softmax: Node, where: Node, scores: str, shows: bool) -> Value:
    mask, first, second = where.inputs
    chosen = g.op("Where", mask, scores, second) if shows else g.op("Where", mask, first, scores)
    return g.op("Softmax", chosen, axis=softmax.attr("axis", -1))


RULE = Rule(
    name="masked-scores",
    why="TensorRT 8.6 adds other memory than the mask to the scores of all batches but the first; Where takes none.",
    ops=("Softmax",),
    find=find,
    needed=only_tensorrt_8,
    before="Softmax(Add(MatMul(q, k), Where(mask, 0, -inf)))",
    after="Softmax(Where(mask, MatMul(q, k), -inf))",
)
