"""A depthwise convolution of rows of tokens, with the GELU after it, as one plugin node that leaves them in rows.

The perceptrons of PVTv2 and of Mix Transformers have one. Rows of tokens are an image with channels last, so that the
Transposes around the convolution go.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from onnx import helper

from trtconv.plugins.described.depthwise_conv import OP_TYPE, SIZE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.rows_as_image import RowsAsImage, depthwise_on_rows

FLOATS = (1, 10, 16)
LARGEST_WEIGHT = 1 << 18


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Gelu(Transpose(Reshape(Conv(Reshape(Transpose(x)))))), or that without the Gelu where none follows."""
    gelu = _is_gelu(node)
    if not gelu and (node.key != "Transpose" or any(_is_gelu(u) for u in graph.uses(node.output))):
        return NOT_THIS
    image = depthwise_on_rows(graph, node.inputs[0] if gelu else node.output)
    if image is None:
        return NOT_THIS
    matched = image.nodes if gelu else image.nodes[:-1]
    if not all(graph.used_once(n.output) for n in matched):
        return Skip("what lies between is used elsewhere too")
    conv = image.conv
    if graph.dims(conv.inputs[1]) != (image.channels, 1, SIZE, SIZE) or graph.dtype(conv.inputs[0]) not in FLOATS:
        return Skip(f"the kernels are not one of {SIZE} by {SIZE} to each channel, or the element type is not known")
    same = conv.attr("auto_pad", "NOTSET") in ("SAME_UPPER", "SAME_LOWER") or list(conv.attr("pads", ())) == [1] * 4
    if not same or any(set(conv.attr(name, (1,))) != {1} for name in ("strides", "dilations")):
        return Skip("it has a stride, a dilation or other pads")
    return Found((*image.nodes, node) if gelu else image.nodes, partial(_build, graph=graph, image=image, gelu=gelu))


def _is_gelu(node: Node) -> bool:
    return node.key == "Gelu" and node.attr("approximate", "none") == "none"


def _build(g: Replacement, graph: Graph, image: RowsAsImage, gelu: bool) -> Value:
    conv, channels = image.conv, image.channels
    array = graph.constant(conv.inputs[1], LARGEST_WEIGHT)
    if array is not None:
        kernels = g.const(np.ascontiguousarray(array[:, 0].transpose(1, 2, 0)), "kernels")
    else:
        kernels = g.transpose(g.squeeze(conv.inputs[1], 1), 1, 2, 0)
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(conv.inputs[0]))
    bias = conv.input(2) or g.const(np.zeros(channels, dtype))
    smooth = "yes" if gelu else "no"
    return g.plugin(OP_TYPE, image.rows, kernels, bias, channels=channels, width=image.width, gelu=smooth)


RULE = Rule(
    name="plugin-depthwise-conv",
    why="The plugin convolves rows of tokens where they lie, and applies GELU, where TensorRT transposes them twice.",
    ops=("Gelu", "Transpose"),
    find=find,
    needed=only_with_plugins,
    before="Gelu(Transpose(Reshape(Conv(Reshape(Transpose(x, [0,2,1]), [N,C,H,W]), w, group=C)), [0,2,1]))",
    after="TrtconvDepthwiseConv(x, w[3,3,C], bias, width=W, gelu=yes)",
    judged_as_float32=True,
    plugin=OP_TYPE,
)
