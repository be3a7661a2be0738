"""A product of rows by a constant matrix, with bias, GELU or a residual, as one plugin node that calls cuBLASLt.

The products of TensorRT 8.6 are older than Hopper's tensor cores: those of a block of ViT-B take 62 us at batch 8 on an
H100, and 48 with cuBLASLt. Rows stay as other plugins write and read them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from onnx import helper

from trtconv.plugins.described.linear import OP_TYPE
from trtconv.plugins.description import NAMESPACE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.column_factors import factors_of, holds_in_half

FLOATS = (1, 10, 16)
PLUGIN = f"{NAMESPACE}::{OP_TYPE}"
# Elements of a matrix that is turned here; a larger one (or one on disk) is by a Transpose.
LARGEST_WEIGHT = 1 << 24


@dataclass(frozen=True)
class LinearProduct:
    """(x weight + bias) * factors, the last two or one of them perhaps not there, and its nodes, the last one last.

    `turned` is set where the weight is [M, K] already: the product is a plugin node of a round before.
    """

    x: str
    weight: str
    nodes: tuple[Node, ...]
    bias: str = ""
    factors: Array | None = None
    turned: bool = False

    def columns(self, graph: Graph) -> int:
        """Columns of the product."""
        return int((graph.dims(self.weight) or (0, 0))[0 if self.turned else 1] or 0)

    def matrix(self, graph: Graph) -> Array | None:
        """The weight as [K, M], where it is not too large or on disk."""
        weight = graph.constant(self.weight, LARGEST_WEIGHT)
        return weight.T if weight is not None and self.turned else weight


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Gelu(MatMul(x, w) + b), residual + (MatMul(x, w) + b) * s, or a product alone where neither follows."""
    product, addend, activation = _product(graph, node), "", "none"
    if product is not None:
        if _is_continued(graph, node):
            return NOT_THIS
        nodes = product.nodes
    else:
        if node.key == "Gelu":
            product = _unshared_product(graph, node.inputs[0])
            activation = "gelu" if node.attr("approximate", "none") == "none" else "gelu_tanh"
        elif node.key == "Add":
            product, addend = _with_residual(graph, node)
        if product is None:
            return NOT_THIS
        nodes = (*product.nodes, node)
    return Found(nodes, partial(_build, graph=graph, product=product, addend=addend, activation=activation))


def _product(graph: Graph, node: Node) -> LinearProduct | None:
    """The product that a node ends: a MatMul, with a bias that is added, with factors for its columns."""
    if node.key == "MatMul":
        return _bare(graph, node)
    if node.key == PLUGIN:
        is_bare = not node.attr("activation", 0) and not node.attr("added", 0)
        return LinearProduct(node.inputs[0], node.inputs[1], (node,), node.inputs[2], turned=True) if is_bare else None
    if node.key == "Add":
        for value, bias in (node.inputs[:2], node.inputs[1::-1]):
            inner = _unshared_product(graph, value)
            if inner is None or inner.nodes[-1].key != "MatMul" or not graph.is_constant(bias):
                continue
            if graph.dims(bias) == (inner.columns(graph),):
                return replace(inner, bias=bias, nodes=(*inner.nodes, node))
    scaled = factors_of(graph, node)
    inner = _unshared_product(graph, scaled[0]) if scaled is not None else None
    if scaled is None or inner is None or inner.factors is not None or scaled[1].size != inner.columns(graph):
        return None
    weight, factors = inner.matrix(graph), scaled[1].reshape(-1)
    if weight is None or (inner.bias and graph.constant(inner.bias) is None):
        return None
    if (graph.rank(inner.x) or 0) < scaled[1].ndim or not holds_in_half(weight * factors):
        return None
    return replace(inner, factors=factors, nodes=(*inner.nodes, node))


def _bare(graph: Graph, node: Node) -> LinearProduct | None:
    x, weight = node.inputs[:2]
    dims = graph.dims(weight) or ()
    if not graph.is_constant(weight) or graph.is_constant(x) or len(dims) != 2 or not all(dims):
        return None
    if (graph.rank(x) or 0) < len(dims) or graph.dtype(x) not in FLOATS:
        return None
    return LinearProduct(x, weight, (node,))


def _unshared_product(graph: Graph, value: str) -> LinearProduct | None:
    maker = graph.maker(value)
    return _product(graph, maker) if maker is not None and graph.used_once(value) else None


def _with_residual(graph: Graph, node: Node) -> tuple[LinearProduct | None, str]:
    """The product and the other operand of an Add of two tensors of the same dims, which are known."""
    dims = [graph.dims(i) for i in node.inputs[:2]]
    if dims[0] is None or None in dims[0] or dims[0] != dims[1]:
        return None, ""
    for value, addend in (node.inputs[1::-1], node.inputs[:2]):
        product = _unshared_product(graph, value)
        if product is not None and not graph.is_constant(addend):
            return product, addend
    return None, ""


def _is_continued(graph: Graph, node: Node) -> bool:
    """Whether what comes behind a product takes it in."""
    users = graph.uses(node.output)
    if len(users) != 1 or not graph.used_once(node.output):
        return False
    user = users[0]
    whole = _product(graph, user)
    if whole is None and user.key == "Add":
        whole, _ = _with_residual(graph, user)
    return user.key == "Gelu" or (whole is not None and node.name in {n.name for n in whole.nodes})


def _build(g: Replacement, graph: Graph, product: LinearProduct, addend: str, activation: str) -> Value:
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(product.x))
    weight = product.matrix(graph)
    bias: Value = product.bias or g.const(np.zeros(product.columns(graph), dtype), "bias")
    if product.factors is not None and weight is not None:
        weight = weight * product.factors
        terms = graph.constant(product.bias) if product.bias else None
        bias = bias if terms is None else g.const(terms * product.factors, "bias")
    turned: Value
    if product.turned and product.factors is None:
        turned = product.weight
    elif weight is None:
        turned = g.transpose(product.weight, 1, 0)
    else:
        turned = g.const(np.ascontiguousarray(weight.T), "weight")
    return g.plugin(
        OP_TYPE, product.x, turned, bias, addend or bias, activation=activation, added="yes" if addend else "no"
    )


RULE = Rule(
    name="plugin-linear",
    why="The plugin multiplies by cuBLASLt, whose products are faster than those of TensorRT 8.6 on newer GPUs.",
    ops=("Add", "Gelu", "MatMul", "Mul"),
    find=find,
    needed=only_with_plugins,
    before="Gelu(MatMul(x, w[K,M]) + b[M]) or residual + (MatMul(x, w[K,M]) + b[M]) * s[M]",
    after="TrtconvLinear(x, w^T, b, residual, activation=gelu, added=yes)",
    judged_as_float32=True,
    plugin=OP_TYPE,
    after_rules=("plugin-attention", "plugin-group-norm"),
)
