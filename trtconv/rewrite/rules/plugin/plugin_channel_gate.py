"""The gate of a squeeze-and-excitation block as one plugin node, in FP16: means of planes, two products, the sigmoid.

A graph in FP16 holds means in FP32, so that sums of planes cannot overflow: TensorRT 8.6 writes the planes in FP32,
pools them and turns the means back, and takes three kernels more for the products. The plugin reads planes in half as
convolutions write them, and sums in FP32: EfficientNet-B0 goes from 0.99 to 1.27 of torch.compile's speed at batch 8
(`gpu_networks_dense.json`). In FP32 plugins of 8.6 may not read channels last, and it loses: 0.86 for 0.95 in TF32, so
that `plugin-channel-gate-of-means` leaves the means to TensorRT there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from onnx import helper

from trtconv.core.precision import FP16
from trtconv.core.tolerance import Tolerance
from trtconv.plugins.described.channel_gate import OP_TYPE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

FLOATS = (1, 10, 16)
LARGEST_WEIGHT = 1 << 22
IMAGE_RANK = 4
GATES = {"Sigmoid": "sigmoid", "HardSigmoid": "hard_sigmoid"}
# Of HardSigmoid, as PyTorch writes it.
ALPHA, BETA, NEARLY = 1 / 6, 0.5, 1e-6

# A gate between two large sums of unlike signs shows the order in which they were added, up to 2e-4 in EfficientNet-B0.
PROOF = Tolerance(rtol=0.0, atol=5e-4, why="the last digit of half at a gate of 1")


@dataclass(frozen=True)
class ChannelGate:
    """Sigmoid(expand(activation(reduce(mean of x)))). `nodes` are those behind the mean, the last one last."""

    x: str
    channels: int
    hidden: int
    mean: Node
    reduce: Node
    expand: Node
    activation: str
    gate: str
    nodes: tuple[Node, ...]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Sigmoid or HardSigmoid of Conv(activation(Conv(mean of planes))), both of 1 by 1."""
    gate = match_gate(graph, node)
    if isinstance(gate, Skip):
        return gate
    return Found((gate.mean, *gate.nodes), partial(gate_node, x=gate.x, graph=graph, gate=gate))


def match_gate(graph: Graph, node: Node) -> ChannelGate | Skip:
    """The gate whose last node is a Sigmoid or HardSigmoid."""
    if node.key == "HardSigmoid" and not _is_torchs(node):
        return NOT_THIS
    expand = _alone(graph, node.inputs[0], "Conv")
    activated = _activation(graph, expand.inputs[0]) if expand is not None else None
    if expand is None or activated is None:
        return NOT_THIS
    reduce = graph.maker(activated[0], "Conv")
    mean = _alone(graph, reduce.inputs[0], "ReduceMean", "GlobalAveragePool") if reduce is not None else None
    if reduce is None or mean is None or not _is_of_planes(graph, mean):
        return NOT_THIS
    x = mean.inputs[0]
    weights = [graph.dims(c.inputs[1]) or () for c in (reduce, expand)]
    channels = (graph.dims(x) or (0, 0))[1]
    hidden = weights[0][0] if weights[0] else 0
    if not isinstance(channels, int) or not isinstance(hidden, int) or graph.dtype(x) not in FLOATS:
        return Skip("the channels or the element type are not known")
    if weights != [(hidden, channels, 1, 1), (channels, hidden, 1, 1)] or any(_is_padded(c) for c in (reduce, expand)):
        return Skip("the convolutions are not products of all channels")
    nodes = (reduce, *activated[1], expand, node)
    return ChannelGate(x, channels, hidden, mean, reduce, expand, activated[2], GATES[node.key], nodes)


def _is_torchs(node: Node) -> bool:
    return bool(abs(node.attr("alpha", 0.2) - ALPHA) < NEARLY and node.attr("beta", 0.5) == BETA)


def _alone(graph: Graph, value: str, *keys: str) -> Node | None:
    """The maker of a value that nothing else uses."""
    return graph.maker(value, *keys) if graph.used_once(value) else None


def _activation(graph: Graph, value: str) -> tuple[str, tuple[Node, ...], str] | None:
    """What SiLU or ReLU is applied to, its nodes and its name."""
    relu = _alone(graph, value, "Relu")
    if relu is not None:
        return (relu.inputs[0], (relu,), "relu") if graph.used_once(relu.inputs[0]) else None
    product = _alone(graph, value, "Mul")
    if product is None:
        return None
    for inner, share in (product.inputs, product.inputs[::-1]):
        sigmoid = _alone(graph, share, "Sigmoid")
        if sigmoid is not None and sigmoid.inputs[0] == inner:
            users = {u.name for u in graph.uses(inner)}
            alone = inner not in graph.outputs and users == {product.name, sigmoid.name}
            return (inner, (sigmoid, product), "silu") if alone else None
    return None


def _is_of_planes(graph: Graph, mean: Node) -> bool:
    """Whether it is the mean of each plane of [N, C, H, W], as [N, C, 1, 1]."""
    if graph.rank(mean.inputs[0]) != IMAGE_RANK:
        return False
    return mean.key == "GlobalAveragePool" or (graph.reduced_axes(mean) == (2, 3) and mean.attr("keepdims", 1) == 1)


def _is_padded(conv: Node) -> bool:
    return conv.attr("group", 1) != 1 or any(conv.attr("pads", ())) or set(conv.attr("strides", (1,))) != {1}


def gate_node(g: Replacement, x: Value, graph: Graph, gate: ChannelGate) -> Value:
    """The plugin's node over the planes `x`, or over their means `[N, C, 1, 1]`."""
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(gate.x))
    tensors: list[Value] = []
    for conv, count in ((gate.reduce, gate.hidden), (gate.expand, gate.channels)):
        array = graph.constant(conv.inputs[1], LARGEST_WEIGHT)
        matrix = g.squeeze(conv.inputs[1], 2, 3) if array is None else g.const(array[:, :, 0, 0], "weight")
        tensors += [matrix, conv.input(2) or g.const(np.zeros(count, dtype), "bias")]
    return g.plugin(OP_TYPE, x, *tensors, activation=gate.activation, gate=gate.gate)


RULE = Rule(
    name="plugin-channel-gate",
    why="The plugin sums planes of half in FP32 where they lie; TensorRT 8.6 writes them in FP32 before it does.",
    ops=("HardSigmoid", "Sigmoid"),
    find=find,
    needed=only_with_plugins,
    before="Sigmoid(Conv(SiLU(Conv(ReduceMean(x, [2,3]), w1)), w2))",
    after="TrtconvChannelGate(x, w1[R,C], b1, w2[C,R], b2)",
    tolerance=PROOF,
    judged_as_float32=True,
    plugin=OP_TYPE,
    precisions=(FP16.name,),
)
