"""Products of bytes as ONNX defines them, on every CPU.

ONNX Runtime multiplies bytes by int8 weights with an instruction that saturates sums of two products at 16 bits, on
x86 without VNNI (its documentation of quantisation, "U8S8 saturation"). Its cure, `session.x64quantprecision`, is a
graph optimisation, and a graph that is judged runs without those. Values and zero point moved by 128, as uint8, are
the same product, and one that does not saturate. Where values are int8 too, they and the result are moved as well:
there is no kernel for int8 by uint8.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class _Places:
    """Where an operator's inputs hold each operand and its zero point, and the zero point of the result (-1: none).

    Values that the operator turns into bytes itself (uint8) stand nowhere.
    """

    values: tuple[int, int]
    weights: tuple[int, int]
    result: int = -1
    domain: str = ""


OPERATORS = {
    "MatMulInteger": _Places((0, 2), (1, 3)),
    "ConvInteger": _Places((0, 2), (1, 3)),
    "QLinearMatMul": _Places((0, 2), (3, 5), 7),
    "QLinearConv": _Places((0, 2), (3, 5), 7),
    "QGemm": _Places((0, 2), (3, 5), 8, "com.microsoft"),
    "MatMulIntegerToFloat": _Places((0, 4), (1, 5), -1, "com.microsoft"),
    "DynamicQuantizeMatMul": _Places((-1, -1), (1, 3), -1, "com.microsoft"),
}
NAMES = tuple(name.encode() for name in OPERATORS)
SHIFT = 128
# What hands its first input on.
PASSING = ("Identity", "Reshape", "Transpose", "Slice", "Gather", "Squeeze", "Unsqueeze", "Expand", "Concat", "Tile")


def multiplies_bytes(model: bytes) -> bool:
    """A glance at a serialized model: may it hold such an operator?"""
    return any(name in model for name in NAMES)


def with_unsigned_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with int8 operands of these operators as uint8, in place; others, and weights on disk, stay.

    Weights that are no initializers are moved by nodes.
    """
    from onnx import NodeProto

    _write_weights_out(model)
    fed = {v.name for v in model.graph.input}
    tensors = {t.name: t for t in model.graph.initializer if t.name not in fed}
    nodes: list[onnx.NodeProto] = []
    changed = False
    for number, source in enumerate(model.graph.node):
        node = NodeProto()
        node.CopyFrom(source)
        places = OPERATORS.get(node.op_type)
        before = after = ()
        if places is not None and (node.domain or "").replace("ai.onnx", "") == places.domain:
            before, after = _change(node, places, model.graph, tensors, number)
        changed = changed or source != node
        nodes += [*before, node, *after]
    if changed:
        del model.graph.node[:]
        model.graph.node.extend(nodes)
    return model


def _write_weights_out(model: onnx.ModelProto) -> None:
    """Make initializers of Constants that these operators read, and move other int8 weights to uint8, in place."""
    from onnx import TensorProto

    graph = model.graph
    makers = {o: n for n in graph.node for o in n.output}
    types = {t.name: t.data_type for t in graph.initializer}
    types |= {v.name: v.type.tensor_type.elem_type for v in graph.input}
    present = {t.name for t in graph.initializer}
    moving: list[tuple[onnx.NodeProto, _Places]] = []
    for node in graph.node:
        places = OPERATORS.get(node.op_type)
        if places is None or (node.domain or "").replace("ai.onnx", "") != places.domain:
            continue
        for name in node.input:
            maker = makers.get(name)
            if maker is not None and maker.op_type == "Constant" and name not in present:
                tensor = next((a.t for a in maker.attribute if a.name == "value"), None)
                if tensor is not None:
                    graph.initializer.add().CopyFrom(tensor)
                    graph.initializer[-1].name = name
                    present.add(name)
        weights = _input(node, places.weights[0])
        # There is no kernel for int8 by uint8.
        values = places.values[0]
        of_bytes = values < 0 or _dtype(node.input[values], makers, types) == TensorProto.UINT8
        if of_bytes and weights not in present and _dtype(weights, makers, types) == TensorProto.INT8:
            moving.append((node, places))
    remaining = [n for n in graph.node if not (n.op_type == "Constant" and n.output[0] in present)]
    nodes = []
    for node in remaining:
        places = next((p for n, p in moving if n is node), None)
        nodes += _with_moved_operands(node, places, graph) if places is not None else [node]
    copies = [type(n).FromString(n.SerializeToString()) for n in nodes]
    del graph.node[:]
    graph.node.extend(copies)


def _with_moved_operands(node: onnx.NodeProto, places: _Places, graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """The node behind nodes that move its weights and their zero point; of int8 values nothing changes."""
    from onnx import NodeProto, TensorProto

    moved = NodeProto()
    moved.CopyFrom(node)
    before: list[onnx.NodeProto] = []
    for index in places.weights:
        moved.input.extend([""] * (index + 1 - len(moved.input)))
        name = f"{node.output[0]}/unsigned_operand{index}"
        if moved.input[index]:
            before += _shifting(moved.input[index], name, SHIFT, TensorProto.UINT8, graph)
            moved.input[index] = before[-1].output[0]
        else:
            graph.initializer.append(_number(name))
            moved.input[index] = name
    return [*before, moved]


def _dtype(name: str, makers: dict[str, onnx.NodeProto], types: dict[str, int]) -> int:
    """The element type of a value as far as it shows in the nodes that make it; 0 where it does not."""
    from onnx import TensorProto

    while name in makers:
        node = makers[name]
        attributes = {a.name: a for a in node.attribute}
        if node.op_type == "ConstantOfShape":
            return int(attributes["value"].t.data_type if "value" in attributes else TensorProto.FLOAT)
        if node.op_type == "Cast":
            return int(attributes["to"].i)
        if node.op_type == "Constant":
            return int(attributes["value"].t.data_type) if "value" in attributes else 0
        if node.op_type in ("QuantizeLinear", "DynamicQuantizeLinear"):
            name = _input(node, 2)
            if not name:
                return int(TensorProto.UINT8)
            continue
        if node.op_type not in PASSING or not node.input:
            return 0
        name = node.input[0]
    return types.get(name, 0)


def _change(
    node: onnx.NodeProto, places: _Places, graph: onnx.GraphProto, tensors: dict[str, onnx.TensorProto], number: int
) -> tuple[tuple[onnx.NodeProto, ...], tuple[onnx.NodeProto, ...]]:
    """Change one node in place; the nodes that have to stand before and after it."""
    from onnx import TensorProto

    at, point = places.weights
    weights, zero = tensors.get(_input(node, at)), tensors.get(_input(node, point))
    if weights is None or (zero is None and _input(node, point)):
        return (), ()
    moved = [_moved(t, f"{t.name}/unsigned{number}") for t in (weights, zero) if t is not None]
    if any(t is None for t in moved):
        return (), ()
    if zero is None:
        moved.append(_number(f"{weights.name}/zero{number}"))
        node.input.extend([""] * (point + 1 - len(node.input)))
    own_point = tensors.get(_input(node, places.values[1]))
    result_point = tensors.get(_input(node, places.result)) if places.result >= 0 else None
    before: tuple[onnx.NodeProto, ...] = ()
    after: tuple[onnx.NodeProto, ...] = ()
    if own_point is not None and own_point.data_type == TensorProto.INT8:
        prefix = f"{node.output[0]}/unsigned{number}"
        before = _shifting(node.input[places.values[0]], f"{prefix}/values", SHIFT, TensorProto.UINT8, graph)
        node.input[places.values[0]] = before[-1].output[0]
        moved.append(_moved(own_point, f"{own_point.name}/unsigned{number}_own"))
        node.input[places.values[1]] = f"{own_point.name}/unsigned{number}_own"
        if result_point is not None and result_point.data_type == TensorProto.INT8:
            moved.append(_moved(result_point, f"{result_point.name}/unsigned{number}_result"))
            node.input[places.result] = f"{result_point.name}/unsigned{number}_result"
            after = _shifting(f"{prefix}/result", f"{prefix}/back", -SHIFT, TensorProto.INT8, graph)
            after[-1].output[0], node.output[0] = node.output[0], f"{prefix}/result"
    graph.initializer.extend(t for t in moved if t is not None)
    node.input[at], node.input[point] = (t.name for t in moved[:2] if t is not None)
    return before, after


def _input(node: onnx.NodeProto, index: int) -> str:
    return str(node.input[index]) if 0 <= index < len(node.input) else ""


def _shifting(value: str, prefix: str, by: int, dtype: int, graph: onnx.GraphProto) -> tuple[onnx.NodeProto, ...]:
    """Bytes moved by a number: through int32, in which nothing wraps around."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    graph.initializer.append(numpy_helper.from_array(np.array(by, np.int32), f"{prefix}/by"))
    return (
        helper.make_node("Cast", [value], [f"{prefix}/whole"], to=TensorProto.INT32),
        helper.make_node("Add", [f"{prefix}/whole", f"{prefix}/by"], [f"{prefix}/sum"]),
        helper.make_node("Cast", [f"{prefix}/sum"], [f"{prefix}/bytes"], to=dtype),
    )


def _moved(tensor: onnx.TensorProto, name: str) -> onnx.TensorProto | None:
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if tensor.data_type != TensorProto.INT8 or tensor.data_location == TensorProto.EXTERNAL:
        return None
    values = numpy_helper.to_array(tensor).astype(np.int16) + SHIFT
    return numpy_helper.from_array(values.astype(np.uint8), name)


def _number(name: str) -> onnx.TensorProto:
    import numpy as np
    from onnx import numpy_helper

    return numpy_helper.from_array(np.array(SHIFT, np.uint8), name)
