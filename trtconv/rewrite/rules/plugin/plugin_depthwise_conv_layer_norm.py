"""A depthwise convolution and the layer normalisation over its channels as one plugin node, channels last.

ConvNeXt's blocks begin with it. The Transposes that are left around the node meet those of the neighbouring blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from onnx import helper

from trtconv.core.errors import InvalidRequestError
from trtconv.plugins.described.depthwise_conv_layer_norm import DEPTHWISE_CONV_LAYER_NORM, OP_TYPE, SIZES
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

FLOATS = (1, 10, 16)
CHANNELS_LAST = [0, 2, 3, 1]
# Elements of a weight that is laid out anew here; a larger one (or one on disk) is by two nodes.
LARGEST_WEIGHT = 1 << 18


@dataclass(frozen=True)
class Convolution:
    """A Conv with one kernel to each channel, and the sizes that the plugin is given."""

    node: Node
    channels: int
    size: int


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match LayerNormalization over the last axis of Transpose(Conv(x)) where nothing else uses what lies between."""
    transpose = graph.maker(node.inputs[0], "Transpose")
    if transpose is None or list(transpose.attr("perm", ())) != CHANNELS_LAST:
        return NOT_THIS
    conv = graph.maker(transpose.inputs[0], "Conv")
    if conv is None or conv.attr("group", 1) == 1:
        return NOT_THIS
    if node.attr("axis", -1) not in (-1, 3) or any(
        o and (graph.uses(o) or o in graph.outputs) for o in node.outputs[1:]
    ):
        return Skip("it is not over the channels, or gives more than the normalised values")
    if not graph.used_once(conv.output) or not graph.used_once(transpose.output):
        return Skip("the convolution's result is used elsewhere too")
    convolution = _read(graph, conv)
    if isinstance(convolution, Skip):
        return convolution
    vectors = (conv.input(2), node.inputs[1], node.input(2))
    if any(v and graph.dims(v) != (convolution.channels,) for v in vectors):
        return Skip("bias, scale or shift is not one value for each channel")
    return Found((conv, transpose, node), lambda g: _build(g, graph, convolution, vectors, node))


def _read(graph: Graph, conv: Node) -> Convolution | Skip:
    weight = graph.dims(conv.inputs[1])
    if weight is None or len(weight) != 4 or weight[1] != 1 or weight[2] != weight[3] or weight[2] not in SIZES:
        return Skip(f"the kernels are not one square to each channel, of a size among {SIZES}")
    channels, size = int(weight[0] or 0), int(weight[2] or 0)
    if channels != conv.attr("group", 1) or graph.dtype(conv.inputs[0]) not in FLOATS:
        return Skip("it is not one kernel to each channel, or the element type is not known")
    plain = all(set(conv.attr(name, [1])) == {1} for name in ("strides", "dilations"))
    same = (
        conv.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER")
        or list(conv.attr("pads", ())) == [size // 2] * 4
    )
    if not plain or not same:
        return Skip("it has a stride, dilation or pads that change the size")
    try:
        shapes = [(None, None, None, channels), (size, size, channels), *((channels,),) * 3]
        DEPTHWISE_CONV_LAYER_NORM.output_shapes(shapes, {"channels": channels})
    except InvalidRequestError as error:
        return Skip(error.message)
    return Convolution(conv, channels, size)


def _build(g: Replacement, graph: Graph, convolution: Convolution, vectors: tuple[str, str, str], node: Node) -> Value:
    x, weight = convolution.node.inputs[:2]
    array = graph.constant(weight, LARGEST_WEIGHT)
    if array is not None:
        kernels = g.const(np.ascontiguousarray(array[:, 0].transpose(1, 2, 0)), "kernels")
    else:
        kernels = g.transpose(g.squeeze(weight, 1), 1, 2, 0)
    nothing = np.zeros(convolution.channels, helper.tensor_dtype_to_np_dtype(graph.dtype(x)))
    bias, scale, shift = (v or g.const(nothing) for v in vectors)
    epsilon = float(node.attr("epsilon", 1e-5))
    rows = g.transpose(x, *CHANNELS_LAST)
    return g.plugin(OP_TYPE, rows, kernels, bias, scale, shift, channels=convolution.channels, epsilon=epsilon)


RULE = Rule(
    name="plugin-depthwise-conv-layer-norm",
    why="The plugin convolves and normalises in one pass, channels last, where the Transposes between blocks cancel.",
    ops=("LayerNormalization",),
    find=find,
    needed=only_with_plugins,
    before="LayerNormalization(Transpose(Conv(x, w[C,1,7,7], group=C), [0,2,3,1]), scale, shift)",
    after="TrtconvDepthwiseConvLayerNorm(Transpose(x, [0,2,3,1]), w[7,7,C], bias, scale, shift)",
    judged_as_float32=True,
    plugin=OP_TYPE,
)
