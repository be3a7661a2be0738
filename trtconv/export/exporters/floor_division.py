"""Python's `//` rounds down, ONNX's integer Div rounds towards zero; they differ when the dividend is negative.

A U-Net that pads by `(skip - up) // 2` on odd sizes is shifted by a pixel by it, with equal shapes, in both exporters.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.intervals import Bounds

if TYPE_CHECKING:
    import onnx


def floor_negative_divisions(graph: onnx.GraphProto, trace: Trace, floors: Collection[str] | None) -> int:
    """Put `Div(Sub(a, Mod(a, b)), b)` for each integer division of sizes that may be negative; returns how many.

    `floors` are the names of the nodes that are known to be Python's `//`; None means every division of sizes.
    """
    import onnx

    bounds = Bounds(graph, trace.specs, trace.space)
    nodes: list[onnx.NodeProto] = []
    changed = 0
    for node in graph.node:
        is_integer_division = node.op_type == "Div" and (floors is None or node.name in floors)
        dividend = bounds.of(node.input[0]) if is_integer_division else None
        divisor = bounds.of(node.input[1]) if is_integer_division else None
        if dividend is None or divisor is None or not dividend.rooted or not divisor.rooted:
            nodes.append(node)
            continue
        if dividend.low >= 0 and divisor.low > 0:
            nodes.append(node)
            continue
        changed += 1
        a, b, out = node.input[0], node.input[1], node.output[0]
        replacement = (
            onnx.helper.make_node("Mod", [a, b], [f"{out}_rest"], name=f"{node.name}_rest"),
            onnx.helper.make_node("Sub", [a, f"{out}_rest"], [f"{out}_whole"], name=f"{node.name}_whole"),
            onnx.helper.make_node("Div", [f"{out}_whole", b], [out], name=node.name),
        )
        for part in replacement:
            part.metadata_props.extend(node.metadata_props)
        nodes += replacement
    if changed:
        del graph.node[:]
        graph.node.extend(nodes)
    return changed
