"""A sum with 0 between the heads of attention that are put together and the product behind them.

TensorRT 8.6.0 takes the Transpose out of such a chain, by another order of the product's rows, and may not tell what
is added later: in some of the decoders that were run on an H200 and an H100 (Bloom, Whisper) the stream [N, T, C] was
then read as [T, N, C] behind the first layer. All was right for N = 1, also with the pass switched off that does it
(`global_tactics`), and in these graphs with an elementwise operator in between that is not folded away
(benchmarks/results/gpu_networks_checked.json). Why others with the same chain are right is not known, so it is put
into all whose batch moves. Images of a fixed number of tokens were right in all networks that were run, and are left
alone.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

MERGES = [0, 2, 1, 3]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MatMul(Reshape(Transpose(heads)), w[C, K]), where heads[N, H, T, D] are a product of two values."""
    weight = graph.constant_tensor(node.inputs[1])
    merged = graph.maker(node.inputs[0], "Reshape")
    transpose = graph.maker(merged.inputs[0], "Transpose") if merged is not None else None
    if weight is None or len(weight.dims) != 2 or transpose is None or list(transpose.attr("perm", [])) != MERGES:
        return NOT_THIS
    heads, _ = graph.behind(transpose.inputs[0], "Reshape")
    product = graph.maker(heads, "MatMul")
    dims = graph.dims(node.inputs[0])
    if product is None or any(map(graph.is_constant, product.inputs)) or dims is None or len(dims) != 3:
        return NOT_THIS
    if isinstance(dims[0], int):
        return Skip("the batch does not move")
    if isinstance(dims[1], int) and not _embeds_tokens(graph):
        return Skip("an image of a fixed number of tokens")
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(node.inputs[0]))
    return Found((node,), lambda g: _build(g, node, dtype))


def _embeds_tokens(graph: Graph) -> bool:
    """True where rows are looked up in a table, as words are and pixels are not."""
    tables = (graph.constant_tensor(n.inputs[0]) for n in graph.find("Gather"))
    return any(t is not None and len(t.dims) == 2 for t in tables)


def _build(g: Replacement, node: Node, dtype: np.dtype[np.generic]) -> Value:
    apart = g.add(node.inputs[0], g.const(np.zeros((), dtype), "nothing"))
    return g.matmul(apart, node.inputs[1])


RULE = Rule(
    name="merged-heads",
    why="TensorRT 8.6 mixes up batch and tokens behind attention in some decoders; a sum with 0 keeps them apart.",
    ops=("MatMul",),
    find=find,
    needed=only_tensorrt_8,
    before="MatMul(Reshape(Transpose(heads, perm=[0, 2, 1, 3])), w[C, K])",
    after="MatMul(Add(Reshape(Transpose(heads, perm=[0, 2, 1, 3])), 0), w[C, K])",
)
