"""Nodes of plugins that TensorRT 11 no longer ships: written out where they are arithmetic, else what to use."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from onnx import numpy_helper

from trtconv.core.targets import Target
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

ADVICE = {
    "NMS_TRT": "use EfficientNMS_TRT, or ONNX's NonMaxSuppression",
    "NMSDynamic_TRT": "use EfficientNMS_TRT, or ONNX's NonMaxSuppression",
    "Proposal": "decode the boxes in the graph and use EfficientNMS_TRT",
    "ProposalDynamic": "decode the boxes in the graph and use EfficientNMS_TRT",
    "CropAndResize": "use ONNX's RoiAlign",
    "CropAndResizeDynamic": "use ONNX's RoiAlign",
    "CoordConvAC": "concatenate the coordinates in the module, from torch.linspace",
    "SpecialSlice_TRT": "use ONNX's Slice",
    "Proposal_TRT": "decode the boxes in the graph and use EfficientNMS_TRT",
    "SingleStepLSTMPlugin": "use ONNX's LSTM",
}
# These are still in TensorRT 11; RTX has no plugins at all.
ADVICE_RTX = {
    "EfficientNMS_TRT": "end the network before it, or keep a fixed number of boxes in the module",
    "BatchedNMS_TRT": "end the network before it, or keep a fixed number of boxes in the module",
    "BatchedNMSDynamic_TRT": "end the network before it, or keep a fixed number of boxes in the module",
    "ROIAlign_TRT": "use ONNX's RoiAlign, which is written out for RTX",
    "InstanceNormalization_TRT": "use ONNX's InstanceNormalization",
    "GroupNormalizationPlugin": "use ONNX's GroupNormalization",
    "ModulatedDeformConv2d": "use ONNX's DeformConv, which is written out for RTX",
    "CustomSkipLayerNormPluginDynamic": "use Add and ONNX's LayerNormalization",
    "CustomQKVToContextPluginDynamic": "use MatMul and Softmax, or ONNX's Attention",
}


def needed(target: Target) -> bool:
    """They are still there in 10."""
    return target.generation >= 11


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match by op type in any domain, as TensorRT's parser does."""
    if node.op in ADVICE:
        return Skip(f"TensorRT 11 has no plugin {node.op} any more: {ADVICE[node.op]}")
    if node.op in ADVICE_RTX:
        return Skip(f"RTX has no plugins, so no {node.op}: {ADVICE_RTX[node.op]}") if graph.target.is_rtx else NOT_THIS
    if not graph.dtype(node.inputs[0]):
        return Skip("the element type is not known")
    make = MADE[node.op]
    if node.op == "Normalize_TRT":
        weights = node.attr("weights")
        if weights is None:
            return Skip("its weights are not an attribute of the node")
    return Found((node,), lambda g: make(g, node))


def _leaky_relu(g: Replacement, node: Node) -> Value:
    return g.op("LeakyRelu", node.inputs[0], alpha=float(node.attr("negSlope", 0.01)))


def _clip(g: Replacement, node: Node) -> Value:
    low, high = (g.scalar(float(node.attr(n, 0.0)), node.inputs[0]) for n in ("clipMin", "clipMax"))
    return g.clip(node.inputs[0], low, high)


def _normalize(g: Replacement, node: Node) -> Value:
    """x / sqrt(sum of squares + eps), over channels or over all but the batch, times a weight per channel."""
    x = node.inputs[0]
    axes = [1, 2, 3] if node.attr("acrossSpatial", 0) else [1]
    total = g.reduce("ReduceSum", g.mul(x, x), axes)
    length = g.sqrt(g.add(total, g.scalar(float(node.attr("eps", 1e-10)), x)))
    weights = np.asarray(node.attr("weights"), np.float32).reshape(1, -1, 1, 1)
    return g.mul(g.div(x, length), g.const(weights))


def _batch_tile(g: Replacement, node: Node) -> Value:
    """The second input, once per image of the first."""
    count = g.gather(g.shape_of(node.inputs[0]), g.ints(0), axis=0)
    rank = g.index.rank(node.inputs[1]) or 4
    rest = g.gather(g.shape_of(node.inputs[1]), g.ints(*range(1, rank)), axis=0)
    return g.expand(node.inputs[1], g.concat(count, rest))


def _gelu(g: Replacement, node: Node) -> Value:
    """The approximation by tanh, of the value plus its bias where there is one."""
    x, bias = node.inputs[0], node.attr("bias")
    if bias is not None:
        x = g.add(x, g.const(numpy_helper.to_array(bias)))
    inner = g.add(x, g.mul(g.mul(g.mul(x, x), x), g.scalar(0.044715, node.inputs[0])))
    curve = g.tanh(g.mul(inner, g.scalar(math.sqrt(2 / math.pi), node.inputs[0])))
    half = g.mul(x, g.scalar(0.5, node.inputs[0]))
    return g.mul(half, g.add(curve, g.scalar(1.0, node.inputs[0])))


def _resize_nearest(g: Replacement, node: Node) -> Value:
    scale = float(node.attr("scale", 1.0))
    attributes = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    return g.resize(node.inputs[0], "", g.const(np.asarray([1, 1, scale, scale], np.float32)), **attributes)


MADE: dict[str, Callable[[Replacement, Node], Value]] = {
    "LReLU_TRT": _leaky_relu,
    "Clip_TRT": _clip,
    "Normalize_TRT": _normalize,
    "BatchTilePlugin_TRT": _batch_tile,
    "CustomGeluPluginDynamic": _gelu,
    "ResizeNearest_TRT": _resize_nearest,
}
NAMES = (*MADE, *ADVICE, *ADVICE_RTX)

RULE = Rule(
    name="removed-plugin",
    why="TensorRT 11 dropped these plugins; those that are arithmetic are written out.",
    ops=(*NAMES, *(f"*::{name}" for name in NAMES)),
    find=find,
    needed=needed,
    before="Normalize_TRT(x, weights=[..], eps=1e-10)",
    after="Mul(Div(x, Sqrt(ReduceSum(Mul(x, x)) + eps)), weights)",
    unproved="no evaluator has this plugin, so its documented arithmetic could not be compared with it",
)
