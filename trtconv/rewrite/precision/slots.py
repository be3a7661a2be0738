"""The element type that each input and output of a node gets."""

from __future__ import annotations

from dataclasses import dataclass

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.half import FLOAT
from trtconv.rewrite.precision.operators import ANY_TYPE
from trtconv.rewrite.precision.state import PrecisionPlan

AS_IT_IS = 0


@dataclass(frozen=True)
class Slots:
    """ONNX element types by position; AS_IT_IS for values that are not FP32 and for inputs of any type."""

    inputs: tuple[int, ...]
    outputs: tuple[int, ...]


def slots_of(plan: PrecisionPlan, graph: Graph, node: Node) -> Slots:
    """The types of a node's FP32 inputs and outputs after the conversion."""
    half = plan.to.onnx
    stays_fp32 = id(node) in plan.fp32_reasons
    float_inputs = [plan.types.is_float(graph, n) for n in node.inputs]
    float_outputs = [plan.types.is_float(graph, n) for n in node.outputs]
    if node.key in ANY_TYPE or (node.key == "Cast" and not stays_fp32):
        return Slots((AS_IT_IS,) * len(float_inputs), _only(float_outputs, [half] * len(float_outputs)))
    if stays_fp32:
        return Slots(
            _only(float_inputs, [FLOAT] * len(float_inputs)), _only(float_outputs, [FLOAT] * len(float_outputs))
        )
    if node.key in ("If", "Constant", "ConstantOfShape"):
        return Slots((AS_IT_IS,) * len(float_inputs), _only(float_outputs, [half] * len(float_outputs)))
    signature = plan.signatures.of(node)
    assert signature is not None, node.key
    inputs, variables = [], set()
    for index in range(len(float_inputs)):
        slot = signature.input(index)
        wide = plan.to.type_text not in slot.allowed or _is_statistic(node, slot.variable, signature.input(0).variable)
        inputs.append(FLOAT if wide else half)
        variables |= set() if wide else {slot.variable}
    # An output whose variable no input has is given its type by an attribute: FP32, as it was.
    outputs = [half if signature.output(i).variable in variables else FLOAT for i in range(len(float_outputs))]
    return Slots(_only(float_inputs, inputs), _only(float_outputs, outputs))


def _only(mask: list[bool], types: list[int]) -> tuple[int, ...]:
    return tuple(t if m else AS_IT_IS for m, t in zip(mask, types, strict=True))


def _is_statistic(node: Node, variable: str, of_data: str) -> bool:
    """Mean, variance, scale and bias of BatchNormalization stay in FP32 where the operator lets them."""
    return node.key == "BatchNormalization" and variable != of_data
