"""The layers that TensorRT computes in INT8 or FP8, and why one of them is left alone."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from trtconv.core.precision import FP8, Precision
from trtconv.core.targets import Target
from trtconv.rewrite.graph.index import Graph, Node

CONVOLUTIONS = ("Conv", "ConvTranspose")
PRODUCTS = ("Gemm", "MatMul")
LAYER_OPS = (*CONVOLUTIONS, *PRODUCTS)
# Tensor cores multiply tiles of 16 by 16: what is thinner runs no faster than in half precision.
THIN = 16


@dataclass(frozen=True)
class Layer:
    """A layer with a constant weight. `axis` is the weight's axis of output channels, None for one scale in all.

    `k` and `n` are the lengths of its matrix product: `k` products are summed for each of `n` outputs.
    """

    node: Node
    axis: int | None
    k: int
    n: int


def layer_of(graph: Graph, node: Node) -> Layer | str:
    """The layer that a node of `LAYER_OPS` is, or why it has none that can be quantised."""
    weight = graph.constant_tensor(node.input(1))
    if weight is None:
        return "it multiplies two activations, which TensorRT fuses better in half precision (attention)"
    if graph.is_constant(node.input(0)):
        return "its input is a constant"
    dims = tuple(int(d) for d in weight.dims)
    if node.op in CONVOLUTIONS:
        return _convolution(node, dims)
    if len(dims) != 2:
        return "its weight is not a matrix"
    transposed = node.op == "Gemm" and bool(node.attr("transB", 0))
    if node.op == "Gemm" and node.attr("transA", 0):
        return "its input is transposed"
    k, n = dims[::-1] if transposed else dims
    return Layer(node, 0 if transposed else 1, k, n)


def _convolution(node: Node, dims: tuple[int, ...]) -> Layer | str:
    groups, kernel = int(node.attr("group", 1)), prod(dims[2:])
    if node.op == "Conv":
        # A depthwise convolution is bound by memory, which INT8 halves; its sums are short by nature.
        depthwise = groups > 1 and dims[1] == 1
        return Layer(node, 0, THIN if depthwise else dims[1] * kernel, dims[0] if depthwise else dims[0] // groups)
    if groups > 1:
        # Its weights have no axis of all output channels; with one scale TensorRT 8.6 computed it in FP32 on an H200.
        return "it is a transposed convolution in groups, which TensorRT does not compute in INT8"
    return Layer(node, 1, dims[0] * kernel, dims[1])


def obstacle(layer: Layer, precision: Precision, target: Target) -> str:
    """Why a layer should not be quantised; empty where nothing speaks against it."""
    if layer.node.op == "ConvTranspose" and target.generation == 8:
        # On an H200 one of three built, ran and was right but no faster, one built alone, and one ended the build with
        # `buildRefitEngine: Assertion engine failed`, in a network that builds without it.
        return "TensorRT 8.6 fails to build some transposed convolutions in INT8"
    if layer.k < THIN or layer.n < THIN:
        return f"it is thin (K={layer.k}, N={layer.n}; under {THIN} it gains nothing)"
    if precision is FP8 and layer.node.op in CONVOLUTIONS:
        return "TensorRT documents FP8 for matrix products alone, and convolutions in it are not to be trusted"
    return ""
