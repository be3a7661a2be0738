"""ONNX Runtime's QLinearSoftmax in floats.

Its kernel takes the exponentials from a table of whole numbers and divides sums of those (ONNX Runtime,
`qlinear_softmax.cc`): beside a tie it rounds to the other step more often than floats do, so that a step is allowed.
"""

from __future__ import annotations

from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.patterns.byte_bounds import BYTE_BOUNDS

OLD_SOFTMAX = 13


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match the softmax over one axis."""
    value, scale, point, *result = node.inputs
    code = graph.dtype(value)
    if node.attr("opset", 0) < OLD_SOFTMAX:
        return Skip("it flattens its axes, as Softmax did before opset 13")
    if code not in BYTE_BOUNDS:
        return Skip("its values are not bytes")
    axis = node.attr("axis", -1)
    return Found(
        (node,),
        lambda g: g.op("QuantizeLinear", g.softmax(g.op("DequantizeLinear", value, scale, point), axis=axis), *result),
        {value: BYTE_BOUNDS[code]},
    )


RULE = Rule(
    name="quantized-softmax",
    why="TensorRT does not have ONNX Runtime's softmax of bytes; Q/DQ pairs say the same.",
    ops=(f"{DOMAIN}::QLinearSoftmax",),
    find=find,
    tolerance=Tolerance(rtol=0.0, atol=1.0, why="one step of its result"),
    before="QLinearSoftmax(x, sx, zx, s, z)",
    after="QuantizeLinear(Softmax(DequantizeLinear(x, sx, zx)), s, z)",
)
