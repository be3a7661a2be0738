"""The gate of a squeeze-and-excitation block behind native means of planes, in FP32: two products and the sigmoid.

Plugins of TensorRT 8.6 may not read FP32 with channels last, in which its convolutions write: the means stay with
native layers, large planes in two steps, and the plugin takes what is behind them. EfficientNet-B0 in TF32 takes 0.89
of the time at batch 1 and 0.95 at batch 8 (`gpu_efficientnet_tf32.json`).
"""

from __future__ import annotations

from functools import partial

from onnx import TensorProto

from trtconv.core.precision import FP32
from trtconv.plugins.described.channel_gate import OP_TYPE
from trtconv.rewrite.engine.rule import Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.rules.plugin.plugin_channel_gate import ChannelGate, gate_node, match_gate

# A plane of 56 by 56 or more has a mean in one block of threads, which is slow; 8 by 8 first takes many of them.
LARGE, WINDOW = 56, 8


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Sigmoid or HardSigmoid of Conv(activation(Conv(mean of planes))) in FP32, both of 1 by 1."""
    gate = match_gate(graph, node)
    if isinstance(gate, Skip):
        return gate
    if graph.dtype(gate.x) != TensorProto.FLOAT:
        return Skip("it is not in FP32")
    sizes = (graph.dims(gate.x) or ())[2:]
    in_two_steps = all(isinstance(s, int) and s >= LARGE and s % WINDOW == 0 for s in sizes)
    nodes = (gate.mean, *gate.nodes) if in_two_steps else gate.nodes
    return Found(nodes, partial(_build, graph=graph, gate=gate, in_two_steps=in_two_steps))


def _build(g: Replacement, graph: Graph, gate: ChannelGate, in_two_steps: bool) -> Value:
    mean: Value = gate.mean.output
    if in_two_steps:
        window = [WINDOW, WINDOW]
        mean = g.op("GlobalAveragePool", g.op("AveragePool", gate.x, kernel_shape=window, strides=window))
    return gate_node(g, mean, graph, gate)


RULE = Rule(
    name="plugin-channel-gate-of-means",
    why="TensorRT 8.6 takes three kernels and more for a gate, and one block of threads for the mean of a large plane.",
    ops=("HardSigmoid", "Sigmoid"),
    find=find,
    needed=only_tensorrt_8,
    before="Sigmoid(Conv(SiLU(Conv(ReduceMean(x, [2,3]), w1)), w2))",
    after="TrtconvChannelGate(ReduceMean(x, [2,3]), w1[R,C], b1, w2[C,R], b2)",
    plugin=OP_TYPE,
    precisions=(FP32.name,),
)
