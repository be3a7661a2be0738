"""Why a node stays in FP32, seen from its operator and its constants alone."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trtconv.core.model.provenance import rule_of
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.fourier import multiplies_by_waves
from trtconv.rewrite.precision.half import FLOAT, values_of
from trtconv.rewrite.precision.operators import (
    ALWAYS,
    ANY_TYPE,
    BOUNDS,
    COMPARISONS,
    GUARDS,
    LACKING,
    REASONS,
    RESHAPES,
    Reason,
)
from trtconv.rewrite.precision.state import FREE, PrecisionPlan

INTEGERS = (2, 3, 4, 5, 6, 7, 12, 13)
HALVES = (10, 16)


def reason_alone(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    """The reason, or None when neither the operator nor a constant gives one."""
    if not plan.floats(graph, node.inputs + node.outputs) or node.key in ANY_TYPE:
        return None
    if node.name in plan.keep:
        return Reason("asked", "asked for")
    if node.key in ALWAYS:
        return REASONS[node.key]
    if node.key in plan.block:
        return REASONS.get(node.key, Reason("asked", f"{node.key} is blocked"))
    is_stft = node.key == "Conv" and rule_of(node.proto) == "stft"
    if "STFT" in plan.block and (is_stft or multiplies_by_waves(graph, node)):
        return REASONS["STFT"]
    if node.key in LACKING.get(plan.to.name, ()):
        return Reason("target", f"TensorRT has no {plan.to.name} {node.key}")
    if node.key == "Cast":
        return _cast(plan, graph, node)
    if node.key in ("If", "Constant"):
        return None
    if plan.signatures.of(node) is None:
        return Reason("custom", f"{node.key} is not known to take {plan.to.name}")
    reason = _schema(plan, graph, node) or _quantized(plan, graph, node) or _constants(plan, graph, node)
    return reason or _decision(plan, graph, node)


def _cast(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    source, target = plan.types.of(graph, node.inputs[0]), int(node.attr("to"))
    if target in INTEGERS:
        return Reason("coordinates", "an integer is made of it")
    if target == FLOAT and source in INTEGERS:
        return Reason("integers", "half precision would round the integer")
    if target == FLOAT and source in HALVES:
        return Reason("user cast", "the model itself casts it to FP32")
    return None


def _schema(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    signature = plan.signatures.of(node)
    assert signature is not None
    slots = [signature.input(i) for i, n in enumerate(node.inputs) if plan.types.is_float(graph, n)]
    slots += [signature.output(i) for i, n in enumerate(node.outputs) if plan.types.is_float(graph, n)]
    if any(plan.to.type_text in s.allowed for s in slots):
        return None
    return Reason("schema", f"{node.key} has no {plan.to.name} form in opset {plan.signatures.opset}")


def _quantized(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    for name in plan.floats(graph, node.inputs):
        maker = graph.maker(graph.behind(name, *RESHAPES)[0], "DequantizeLinear")
        if maker is not None and not graph.is_constant(maker.inputs[0]):
            return Reason("quantized", "its input is quantized")
    return None


def _decision(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    if node.key in COMPARISONS and any(plan.origin(graph, n) >= FREE for n in plan.floats(graph, node.inputs)):
        return Reason("decisions", "a threshold would be rounded")
    return None


def _constants(plan: PrecisionPlan, graph: Graph, node: Node) -> Reason | None:
    """Constants that half precision would turn into zero or infinity, where that changes the meaning."""
    if node.key in GUARDS or node.key == "ConstantOfShape":
        for number in _scalars(graph, node):
            if 0 < abs(number) < plan.to.normal:
                return Reason("epsilon", f"the constant {number:g} is too small for {plan.to.name}")
    names = plan.floats(graph, node.inputs)
    sizes = [plan.extreme(t) for n in names if (t := graph.constant_tensor(n)) is not None and t.data_type == FLOAT]
    sizes += [abs(v) for v in _fill(node) if math.isfinite(v)]
    top = max(sizes, default=0.0)
    if top <= plan.to.largest:
        return None
    # A bound is clamped where data meets it; where there is no data, the value may still be on its way to a sum.
    if node.key in BOUNDS and any(plan.origin(graph, n) < FREE for n in names):
        return None
    return Reason("overflow", f"the constant {top:g} is too large for {plan.to.name}")


def _scalars(graph: Graph, node: Node) -> Iterator[float]:
    """Constants of one element, also where older opsets write them as attributes."""
    if node.key == "Clip":
        yield from (float(v) for a in ("min", "max") if (v := node.attr(a)) is not None)
    for name in node.inputs:
        number = graph.scalar(name) if name else None
        if number is not None and graph.constant_tensor(name).data_type == FLOAT:  # type: ignore[union-attr]
            yield number
    yield from _fill(node)


def _fill(node: Node) -> Iterator[float]:
    value = node.attr("value") if node.key == "ConstantOfShape" else None
    if value is not None and value.data_type == FLOAT:
        yield from (float(v) for v in values_of(value))
