"""Layer normalisation as a plugin node, of rows that plugins write and read.

Beside layers of its own TensorRT 8.6 puts sums and transposes into the kernels that normalise: with the plugin there,
Swin-T took 1.31 ms for 0.80 on an H200. Between two plugins it has nothing to put in: ViT-B takes 0.86 ms for 0.91.
"""

from __future__ import annotations

import numpy as np
from onnx import helper

from trtconv.plugins.described.layer_norm import OP_TYPE
from trtconv.plugins.description import NAMESPACE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

FLOATS = (1, 10, 16)


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match LayerNormalization over the last axis of what a plugin node gives, used by plugin nodes alone."""
    dims = graph.dims(node.inputs[0])
    if not dims or node.attr("axis", -1) not in (-1, len(dims) - 1):
        return NOT_THIS
    if any(o and (graph.uses(o) or o in graph.outputs) for o in node.outputs[1:]):
        return Skip("it gives more than the normalised values")
    channels = dims[-1]
    if not isinstance(channels, int) or graph.dtype(node.inputs[0]) not in FLOATS:
        return Skip("the channels or the element type are not known")
    if any(v and graph.dims(v) != (channels,) for v in (node.inputs[1], node.input(2))):
        return Skip("scale or shift is not one value for each channel")
    maker, users = graph.maker(node.inputs[0]), graph.uses(node.output)
    neighbours = [*([maker] if maker is not None else []), *users]
    between = maker is not None and users and node.output not in graph.outputs
    if not between or any(n.domain != NAMESPACE for n in neighbours):
        return Skip("it is not between plugin nodes, and TensorRT normalises along with its own layers")
    return Found((node,), lambda g: _build(g, graph, node, channels))


def _build(g: Replacement, graph: Graph, node: Node, channels: int) -> Value:
    x, scale = node.inputs[:2]
    shift = node.input(2) or g.const(np.zeros(channels, helper.tensor_dtype_to_np_dtype(graph.dtype(x))), "shift")
    return g.plugin(OP_TYPE, x, scale, shift, epsilon=float(node.attr("epsilon", 1e-5)))


RULE = Rule(
    name="plugin-layer-norm",
    why="Between plugins TensorRT has no layer to normalise along with, and the plugin is faster.",
    ops=("LayerNormalization",),
    find=find,
    needed=only_with_plugins,
    before="LayerNormalization(TrtconvLinear(...), scale, shift) for plugin nodes",
    after="TrtconvLayerNorm(TrtconvLinear(...), scale, shift)",
    judged_as_float32=True,
    plugin=OP_TYPE,
    after_rules=("plugin-attention", "plugin-depthwise-conv", "plugin-depthwise-conv-layer-norm", "plugin-linear"),
)
