"""A factor for each column of a product by a matrix, multiplied into the matrix: the layer scale of transformers.

TensorRT 8.6 puts such a factor into a convolution, but not into a product: DeiT III-S in FP16 at batch 8 took 0.721 ms
on an H100, and 0.696 without its 24 factors. Where they make a column so small that half precision would lose digits,
as the 1e-6 with which training begins, it stays as it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from trtconv.core.precision import FP16
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.column_factors import factors_of, holds_in_half

LARGEST_WEIGHTS = 1 << 24


@dataclass(frozen=True)
class Product:
    """MatMul(x, weight) + bias, and its nodes."""

    nodes: tuple[Node, ...]
    x: str
    weight: Array
    bias: Array | None


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Mul(MatMul(x, w) + b, s) of constants w[K, M], b[M] (or none) and s[M], used nowhere else."""
    scaled = factors_of(graph, node)
    product = _product(graph, scaled[0]) if scaled is not None else None
    if scaled is None or product is None:
        return NOT_THIS
    factors = scaled[1].reshape(-1)
    if product.weight.shape[1] != factors.size or (graph.rank(product.x) or 0) < scaled[1].ndim:
        return Skip("the factors are not one for each column of the matrix")
    if not all(graph.used_once(n.output) for n in product.nodes):
        return Skip("the product is used elsewhere too")
    if not holds_in_half(product.weight * factors):
        return Skip("a column of the matrix would be too small or too large for half precision")
    return Found((*product.nodes, node), partial(_build, product=product, factors=factors))


def _product(graph: Graph, name: str) -> Product | None:
    """The product that a value is, with what is added to its columns."""
    add, bias = graph.maker(name, "Add"), None
    if add is not None:
        operand = graph.operand(add)
        if operand is None or operand[1].shape[-1:] != (operand[1].size,):
            return None
        name, bias = operand[0], operand[1].reshape(-1)
    product = graph.maker(name, "MatMul")
    weight = graph.constant(product.inputs[1], limit=LARGEST_WEIGHTS) if product is not None else None
    if product is None or weight is None or weight.ndim != 2 or weight.dtype.kind != "f":
        return None
    if bias is not None and bias.size != weight.shape[1]:
        return None
    return Product((product,) if add is None else (product, add), product.inputs[0], weight, bias)


def _build(g: Replacement, product: Product, factors: Array) -> Value:
    y = g.matmul(product.x, g.const(product.weight * factors, "weight"))
    return y if product.bias is None else g.add(y, g.const(product.bias * factors, "bias"))


RULE = Rule(
    name="scale-into-product",
    why="TensorRT 8.6 multiplies factors into convolutions, but not into products; layer scales cost it a pass each.",
    ops=("Mul",),
    find=find,
    needed=only_tensorrt_8,
    precisions=(FP16.name,),
    before="Mul(Add(MatMul(x, w[K,M]), b[M]), s[M])",
    after="Add(MatMul(x, w * s), b * s)",
)
