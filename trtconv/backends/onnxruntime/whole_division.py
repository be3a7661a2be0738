"""Divisions of whole numbers that end in an error where the processor would end the process.

ONNX Runtime's Div and Mod of whole numbers use the processor's division, which raises SIGFPE where the divisor is 0,
and where the smallest number is divided by -1: the process dies, whatever called it. Here such a division reads its
divisor in a shape that comes from a Gather whose index is out of bounds just there: ONNX Runtime reports an error.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import graphs_of, replace_nodes
from trtconv.core.model.opset import opset_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import onnx

# In a serialized node: the field op_type, its length, its letters.
OPERATORS = (b'"\x03Div', b'"\x03Mod')
# CastLike, by which a guard knows the type of its division, came with it.
OLDEST_OPSET = 15
LABEL = "divides whole numbers by zero"
GUARD = re.compile(rf"'?([^'\n]*) {LABEL}")
# Outputs of these are floats whatever comes in; so is what is divided by them.
FLOATS = frozenset(
    (
        "AveragePool",
        "BatchNormalization",
        "Conv",
        "Erf",
        "Exp",
        "GlobalAveragePool",
        "InstanceNormalization",
        "LayerNormalization",
        "Log",
        "ReduceL2",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Sqrt",
        "Tanh",
    )
)
INTEGERS = frozenset(("ArgMax", "ArgMin", "NonZero", "Shape", "Size"))
FLOAT_TYPES = (1, 10, 11, 16)  # FLOAT, FLOAT16, DOUBLE, BFLOAT16
# Outputs of these have the type of the first input.
FOLLOWERS = frozenset(
    (
        "Abs",
        "Add",
        "Clip",
        "Concat",
        "Div",
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "MatMul",
        "Max",
        "Min",
        "Mul",
        "Neg",
        "Pow",
        "ReduceMax",
        "ReduceMean",
        "ReduceMin",
        "ReduceSum",
        "Relu",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Sub",
        "Transpose",
        "Unsqueeze",
    )
)


def divides(model: bytes) -> bool:
    """A glance at a serialized model: may it hold a Div or a Mod?"""
    return any(mark in model for mark in OPERATORS)


def with_guarded_divisions(model: onnx.ModelProto) -> bool:
    """Guard each division that may be one of whole numbers by zero, in place; True when there was one."""
    opset = opset_of(model, 0)
    return sum(_guard_graph(graph, opset) for graph in list(graphs_of(model.graph))) > 0


def division_by_zero(message: str) -> str:
    """The node that divided by zero, if that is what ONNX Runtime's error is about, else nothing."""
    match = GUARD.search(message)
    return match[1].strip() if match else ""


def _guard_graph(graph: onnx.GraphProto, opset: int) -> int:
    producers = {output: node for node in graph.node for output in node.output}
    fed = {v.name for v in graph.input}
    constants = {t.name: t for t in graph.initializer if t.name not in fed}
    declared = {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
    declared |= {name: tensor.data_type for name, tensor in constants.items()}
    nodes, guarded = [], 0
    for node in graph.node:
        if node.op_type in ("Div", "Mod") and node.domain in ("", "ai.onnx") and len(node.input) == 2:
            element_type = _type_of(node, producers, declared)
            typed = opset >= OLDEST_OPSET or element_type
            if typed and element_type not in FLOAT_TYPES and not _is_harmless(node.input[1], producers, constants):
                nodes += _Guard(node, element_type, opset).insert()
                guarded += 1
        nodes.append(node)
    if guarded:
        replace_nodes(graph, nodes)
    return guarded


def _is_harmless(name: str, producers: Mapping[str, onnx.NodeProto], constants: Mapping[str, onnx.TensorProto]) -> bool:
    """Is the divisor a Constant, or an initializer that nobody overrides, without 0 and -1?"""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    node = producers.get(name)
    value = constants.get(name)
    if node is not None and node.op_type == "Constant" and node.attribute:
        value = helper.get_attribute_value(node.attribute[0])
    if isinstance(value, TensorProto):
        if value.data_location == TensorProto.EXTERNAL:
            return False
        value = numpy_helper.to_array(value)
    return value is not None and bool(np.all((np.asarray(value) != 0) & (np.asarray(value) != -1)))


def _type_of(division: onnx.NodeProto, producers: Mapping[str, onnx.NodeProto], declared: Mapping[str, int]) -> int:
    """The element type of the operands and the result, which is one; 0 where that of none of them is to be told."""
    ends = (*division.input, *division.output)
    return next((t for t in (_followed(name, producers, declared) for name in ends) if t), 0)


def _followed(name: str, producers: Mapping[str, onnx.NodeProto], declared: Mapping[str, int]) -> int:
    """The type of a value, or of what it has its type from; 0 where that is not to be told."""
    from onnx import TensorProto, helper

    for _ in range(len(producers) + 1):
        if declared.get(name):
            return declared[name]
        node = producers.get(name)
        if node is None:
            return 0
        if node.op_type in FLOATS:
            return int(TensorProto.FLOAT)
        if node.op_type in INTEGERS:
            return int(TensorProto.INT64)
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        if node.op_type == "Cast":
            return int(attributes["to"])
        if node.op_type == "Constant" and "value" in attributes:
            return int(attributes["value"].data_type)
        if node.op_type not in FOLLOWERS or not node.input:
            return 0
        name = node.input[0]
    return 0


class _Guard:
    """The nodes that a division's divisor passes through, on its way to the division.

    `element_type` is that of the operands; 0: unknown, then the guard finds out whether it is one of whole numbers.
    """

    def __init__(self, node: onnx.NodeProto, element_type: int, opset: int) -> None:
        self.node, self.element_type, self.stem = node, element_type, f"{node.output[0]}/guard"
        # Before opset 14 a 0 in the shape takes the input's size, which is 0 there.
        self.reshape: dict[str, Any] = {"allowzero": 1} if opset >= 14 else {}
        self.nodes: list[onnx.NodeProto] = []

    def add(self, operator: str, *inputs: str, name: str = "", **attributes: object) -> str:
        """The output of one more node."""
        from onnx import helper

        output = f"{self.stem}/{len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [output], name=name, **attributes))
        return output

    def value(self, number: float, like: str) -> str:
        """A number in the type of a value; a fraction is 0 where that is one of whole numbers."""
        import numpy as np
        from onnx import numpy_helper

        constant = self.add("Constant", value=numpy_helper.from_array(np.float32(number)))
        if self.element_type:
            return self.add("Cast", constant, to=self.element_type)
        return self.add("CastLike", constant, like)

    def insert(self) -> list[onnx.NodeProto]:
        """The nodes; the division reads what comes out of them."""
        import numpy as np
        from onnx import TensorProto, numpy_helper

        dividend, divisor = self.node.input
        stops = self.add("Not", self.add("Cast", divisor, to=TensorProto.BOOL))
        if self.node.op_type == "Div":
            # Twice the smallest number wraps around to 0. Mod has more types than ONNX Runtime adds and compares.
            zero, twice = self.value(0.0, dividend), self.add("Add", dividend, dividend)
            smallest = self.add("And", self.add("Equal", twice, zero), self.add("Cast", dividend, to=TensorProto.BOOL))
            overflows = self.add("And", smallest, self.add("Equal", divisor, self.value(-1.0, divisor)))
            stops = self.add("Or", stops, overflows)
        if not self.element_type:
            fraction = self.add("Cast", self.value(0.5, divisor), to=TensorProto.BOOL)
            stops = self.add("And", stops, self.add("Not", fraction))
        index = self.add("Cast", stops, to=TensorProto.INT64)
        zeros = self.add("Constant", value=numpy_helper.from_array(np.zeros(1, np.int64)))
        label = f"{self.node.name or self.node.output[0]} {LABEL}"
        passed = self.add("ReduceSum", self.add("Gather", zeros, index, name=label), keepdims=0)
        shape = self.add("Add", self.add("Shape", divisor), passed)
        self.node.input[1] = self.add("Reshape", divisor, shape, **self.reshape)
        return self.nodes
