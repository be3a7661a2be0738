"""Python's `//` rounds down, ONNX's integer Div rounds towards zero; they differ when the dividend is negative.

A U-Net that pads by `(skip - up) // 2` on odd sizes is shifted by a pixel by it, with equal shapes, in both exporters.
dynamo writes `//` of sizes as a Div; a recording writes every `//` of whole numbers rounded down
(`trtconv.export.exporters.recorded.integers`). Here both get the same form for sizes, a Div alone where it is enough.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import replace_nodes, values_read
from trtconv.export.exporters.trace import Trace
from trtconv.export.sizes.intervals import Bounds

if TYPE_CHECKING:
    import onnx

# The operators of a recorded correction.
CORRECTION = ("And", "Xor", "Not", "Equal", "Less", "Sub", "Mul", "Div", "Constant")
Producers = Mapping[str, "onnx.NodeProto"]


def floor_size_divisions(graph: onnx.GraphProto, trace: Trace, floors: Collection[str]) -> int:
    """Write `//` of sizes as `Div(Sub(a, Mod(a, b)), b)` where one may be negative, else as Div; returns how many.

    `floors` are the names of the Divs that are known to be Python's `//`; those of a recording are known by their form.
    """
    producers = {name: node for node in graph.node for name in node.output}
    bounds = Bounds(graph, trace.specs, trace.space)
    nodes: list[onnx.NodeProto] = []
    superseded: list[onnx.NodeProto] = []
    changed = 0
    for node in graph.node:
        quotient = (
            node if node.op_type == "Div" and node.name in floors else _recorded_quotient(node, producers, bounds)
        )
        negative = _may_be_negative(bounds, quotient) if quotient is not None else None
        if quotient is None or negative is None or (quotient is node and not negative):
            nodes.append(node)
            continue
        changed += 1
        replacement = _rounded_down(node, *quotient.input) if negative else (_part(node, "Div", quotient.input),)
        # A `//` of this one is of sizes, too.
        bounds.define(_part(node, "Div", quotient.input))
        nodes += replacement
        superseded += [] if quotient is node else [node]
    if changed:
        _drop_unread(graph, nodes, superseded, producers)
    return changed


def _may_be_negative(bounds: Bounds, division: onnx.NodeProto) -> bool | None:
    """Whether a quotient of sizes may be negative; None where it is not one of sizes."""
    dividend, divisor = bounds.of(division.input[0]), bounds.of(division.input[1])
    if not dividend.rooted or not divisor.rooted:
        return None
    return dividend.low < 0 or divisor.low <= 0


def _rounded_down(node: onnx.NodeProto, a: str, b: str) -> tuple[onnx.NodeProto, ...]:
    out = node.output[0]
    rest, whole = f"{out}_rest", f"{out}_whole"
    return (
        _part(node, "Mod", [a, b], rest, "_rest"),
        _part(node, "Sub", [a, rest], whole, "_whole"),
        _part(node, "Div", [whole, b]),
    )


def _part(node: onnx.NodeProto, op: str, inputs: Collection[str], output: str = "", suffix: str = "") -> onnx.NodeProto:
    import onnx

    part = onnx.helper.make_node(op, list(inputs), [output or node.output[0]], name=f"{node.name}{suffix}")
    part.metadata_props.extend(node.metadata_props)
    return part


def _recorded_quotient(node: onnx.NodeProto, producers: Producers, bounds: Bounds) -> onnx.NodeProto | None:
    """The Div that a recorded `//` corrects, of the node that gives the quotient rounded down; None for other nodes.

    The condition is that the remainder is negative, or that its sign is not the divisor's.
    """
    if node.op_type != "Where":
        return None
    condition, lower, whole = (producers.get(name) for name in node.input)
    if condition is None or lower is None or whole is None or (lower.op_type, whole.op_type) != ("Sub", "Div"):
        return None
    if condition.op_type == "And":
        condition = producers.get(condition.input[0])
        condition = producers.get(condition.input[0]) if condition is not None and condition.op_type == "Xor" else None
    rest = producers.get(condition.input[0]) if condition is not None and condition.op_type == "Less" else None
    product = producers.get(rest.input[1]) if rest is not None and rest.op_type == "Sub" else None
    if rest is None or product is None or product.op_type != "Mul":
        return None
    of_one = lower.input[0] == product.input[0] == node.input[2] and rest.input[0] == whole.input[0]
    return whole if of_one and _same_divisor(product.input[1], whole.input[1], bounds) else None


def _same_divisor(first: str, second: str, bounds: Bounds) -> bool:
    """True for one value; a recording writes a constant anew for each node that reads it."""
    if first == second:
        return True
    numbers = [bounds.constant(name) for name in (first, second)]
    return all(n is not None and n.size == 1 for n in numbers) and bool(numbers[0] == numbers[1])


def _drop_unread(
    graph: onnx.GraphProto, nodes: list[onnx.NodeProto], superseded: list[onnx.NodeProto], producers: Producers
) -> None:
    """Give the graph these nodes without what only the superseded ones read."""
    above: dict[str, onnx.NodeProto] = {}
    for node in superseded:
        pending = list(node.input)
        while pending:
            maker = producers.get(pending.pop())
            if maker is not None and maker.output[0] not in above and maker.op_type in CORRECTION:
                above[maker.output[0]] = maker
                pending += maker.input
    read = {v.name for v in graph.output}
    remaining = []
    for node in reversed(nodes):
        if len(node.output) == 1 and node.output[0] in above and node.output[0] not in read:
            continue
        read.update(values_read(node))
        remaining.append(node)
    replace_nodes(graph, reversed(remaining))
