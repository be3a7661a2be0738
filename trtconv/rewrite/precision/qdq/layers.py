"""The layers that TensorRT computes in INT8 or FP8, and why one of them is left alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
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
# These give back values that they read: TensorRT moves a Q through them where both sides have one scale.
MOVING = frozenset({
    "AveragePool", "Concat", "DepthToSpace", "Flatten", "GlobalAveragePool", "GlobalMaxPool", "Identity", "MaxPool",
    "Reshape", "Slice", "SpaceToDepth", "Split", "Squeeze", "Transpose", "Unsqueeze",
})  # fmt: skip
# An engine fuses these into a convolution before them, or does them in INT8 too.
FUSED = frozenset({"Add", "Clip", "HardSwish", "LeakyRelu", "Mul", "PRelu", "Relu", "Sigmoid"})


@dataclass(frozen=True)
class Layer:
    """A layer with a constant weight. `axis` is the weight's axis of output channels, None for one scale in all.

    `k` and `n` are the lengths of its matrix product: `k` products are summed for each of `n` outputs.
    """

    node: Node
    axis: int | None
    k: int
    n: int

    @property
    def is_thin(self) -> bool:
        """True for a product that fills no tile of the tensor cores."""
        return self.k < THIN or self.n < THIN


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
    """Why a layer should not be quantised; empty where nothing speaks against it, but that it is thin."""
    if layer.node.op == "ConvTranspose" and target.generation == 8:
        # On an H200 one of three built, ran and was right but no faster, one built alone, and one ended the build with
        # `buildRefitEngine: Assertion engine failed`, in a network that builds without it.
        return "TensorRT 8.6 fails to build some transposed convolutions in INT8"
    if precision is FP8 and layer.node.op in CONVOLUTIONS:
        return "TensorRT documents FP8 for matrix products alone, and convolutions in it are not to be trusted"
    return ""


def without_lone(graph: Graph, layers: Sequence[Layer]) -> tuple[list[Layer], list[Layer]]:
    """The layers to quantise, and the thin ones that are left alone.

    A thin convolution gains nothing by itself. Between layers in INT8 it does, for it gives them INT8 to read: on an
    H200 (TensorRT 8.6) the first convolution in INT8 made the digits' ResNet 2.1 times as fast, their CNN 1.04 times. A
    product that is thin made both slower, by 13 % and 7 %.
    """
    chosen: dict[str, Layer] = {}
    lone = []
    for layer in sorted(layers, key=lambda one: one.node.order, reverse=True):
        gives = layer.node.op in CONVOLUTIONS and _feeds(graph, layer.node, chosen)
        if layer.is_thin and not gives:
            lone.append(layer)
        else:
            chosen[layer.node.name] = layer
    return [layer for layer in layers if layer.node.name in chosen], lone


def _feeds(graph: Graph, node: Node, chosen: Collection[str]) -> bool:
    """True where a chosen layer reads what the node gives, at once or behind what is fused or only moves."""
    values, reached = list(node.outputs), set(node.outputs)
    while values:
        for reader in graph.uses(values.pop()):
            if reader.name in chosen:
                return True
            if reader.key in FUSED or reader.key in MOVING:
                values += [v for v in reader.outputs if v not in reached]
                reached.update(reader.outputs)
    return False


def low_values(graph: Graph, chosen: Collection[str]) -> set[str]:
    """The values that chosen layers give, at once or behind what is fused or only moves."""
    low: set[str] = set()
    for node in sorted(graph.nodes.values(), key=lambda one: one.order):
        sides = [name in low for name in node.inputs if name and not graph.is_constant(name)]
        fused = any(sides) if node.key == "Add" else node.key in FUSED | MOVING and bool(sides) and all(sides)
        if fused or node.name in chosen:
            low.update(node.outputs)
    return low
