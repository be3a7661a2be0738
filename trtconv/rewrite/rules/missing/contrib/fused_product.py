"""ONNX Runtime's products with a factor, transposed operands or an activation of their own."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Activation of FusedConv and FusedGemm -> the names of its parameters, in ONNX's order.
ACTIVATIONS: dict[str, tuple[str, ...]] = {
    "Relu": (),
    "Sigmoid": (),
    "Tanh": (),
    "LeakyRelu": ("alpha",),
    "HardSigmoid": ("alpha", "beta"),
    "Clip": (),
}
ACTIVATION = "activation"


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match FusedMatMul of known ranks, and FusedGemm and FusedConv with an activation that ONNX has."""
    if node.op == "FusedMatMul":
        return _find_product(graph, node)
    name = node.attr(ACTIVATION, "")
    if name and name not in ACTIVATIONS:
        return Skip(f"its activation is {name}")
    if name == "Clip" and len(node.attr("activation_params") or ()) != 2:
        return Skip("its Clip has no bounds")
    return Found((node,), partial(_build, node=node, activation=name))


def _find_product(graph: Graph, node: Node) -> Found | Skip:
    ranks = [graph.rank(name) for name in node.inputs]
    if any(r is None or (r < 2 and node.attr(f"trans{side}", 0)) for side, r in zip("AB", ranks, strict=True)):
        return Skip("the rank of an operand is not known, or is 1")
    if node.attr("transBatchA", 0) or node.attr("transBatchB", 0):
        return Skip("it moves the batch of an operand")
    return Found((node,), partial(_build_product, node=node, ranks=[r or 0 for r in ranks]))


def _build_product(g: Replacement, node: Node, ranks: list[int]) -> Value:
    operands: list[Value] = []
    for side, name, rank in zip("AB", node.inputs, ranks, strict=True):
        order = [*range(rank - 2), rank - 1, rank - 2]
        operands.append(g.transpose(name, *order) if node.attr(f"trans{side}", 0) else name)
    product, factor = g.matmul(*operands), float(node.attr("alpha", 1.0))
    return product if factor == 1.0 else g.mul(product, g.scalar(factor, like=node.inputs[0]))


def _build(g: Replacement, node: Node, activation: str) -> Value:
    own = {n: value for n, value in node.attributes().items() if not n.startswith(ACTIVATION)}
    inputs = [node.input(i) for i in range(3)]
    value = g.op("Conv" if node.op == "FusedConv" else "Gemm", *inputs, **own)
    if node.op == "FusedConv" and node.input(3):
        value = g.add(value, node.inputs[3])
    parameters = list(node.attr("activation_params") or ())
    if activation == "Clip":
        low, high = (g.scalar(float(p), like=node.inputs[0]) for p in parameters)
        return g.clip(value, low, high)
    names = ACTIVATIONS.get(activation, ())
    if node.op == "FusedGemm":
        chosen = {n: node.attr(f"{ACTIVATION}_{n}") for n in names}
    else:
        chosen = {n: float(p) for n, p in zip(names, parameters, strict=False)}
    return g.op(activation, value, **chosen) if activation else value


RULE = Rule(
    name="fused-product",
    why="No TensorRT has the products that ONNX Runtime's optimizer fuses; the parts are the same, and it fuses them.",
    ops=tuple(f"{DOMAIN}::{name}" for name in ("FusedMatMul", "FusedGemm", "FusedConv")),
    find=find,
    before="com.microsoft.FusedMatMul(a, b), alpha = 0.125, transB = 1",
    after="Mul(MatMul(a, Transpose(b)), 0.125)",
)
