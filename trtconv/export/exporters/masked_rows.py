"""Attention over rows that a mask hides altogether.

torch gives 0 for such a row: its mask is -inf, and its softmax is made safe. torch.onnx writes the same operations with
the lowest finite number in place of -inf, so that the NaN which its graph looks for never comes, and the row becomes
the mean of all values. Padding at the left under a causal mask, or an empty sentence of a batch, is such a row.

Here the rows are read off the mask itself, which needs no NaN of an engine either.
"""

from __future__ import annotations

from typing import Any

LOWEST = -3e38


def hide_masked_rows(model: Any) -> int:
    """Replace `IsNaN(Softmax(scores + Where(mask, 0, lowest)))` by "no element of the row is in the mask", in place.

    Works on an ir.Model; returns how many were replaced. Casts between the operators, and a factor, are passed.
    """
    count = 0
    for node in list(model.graph.all_nodes()):
        if node.op_type != "IsNaN":
            continue
        softmax = _producer(node.inputs[0], "Softmax")
        if softmax is None or _axis(softmax) not in (-1, _rank(softmax) - 1):
            continue
        mask = _mask(_producer(softmax.inputs[0], "Add"))
        if mask is not None:
            _replace(model, node, mask)
            count += 1
    return count


def _producer(value: Any, *op_types: str) -> Any:
    """The node that makes a value, behind casts; None when it is another one."""
    node = value.producer() if value is not None else None
    while node is not None and node.op_type == "Cast":
        node = node.inputs[0].producer() if node.inputs[0] is not None else None
    return node if node is not None and node.op_type in op_types else None


def _axis(softmax: Any) -> int:
    axis = softmax.attributes.get("axis")
    return -1 if axis is None else int(axis.value)


def _rank(node: Any) -> int:
    shape = node.inputs[0].shape
    return len(shape) if shape is not None else 0


def _mask(addition: Any) -> Any:
    """The mask of a sum of scores and `Where(mask, 0, lowest)`; None for another sum."""
    for value in addition.inputs if addition is not None else ():
        choice = _producer(value, "Where")
        if choice is None:
            continue
        mask, usual, hidden = choice.inputs
        if _number(usual) == 0.0 and (_number(hidden) or 0.0) < LOWEST:
            return mask
    return None


def _number(value: Any) -> float | None:
    import onnx_ir

    tensor = onnx_ir.convenience.get_const_tensor(value) if value is not None else None
    return float(tensor.numpy().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None


def _replace(model: Any, node: Any, mask: Any) -> None:
    """`Not(Cast(ReduceMax(Cast(mask)), bool))` in place of the node: TensorRT takes no extremum of bools."""
    import onnx_ir

    tape = onnx_ir.tape.Tape()
    axes = onnx_ir.Value(
        name=f"{node.outputs[0].name}/axes", const_value=onnx_ir.tensor([-1]),
        type=onnx_ir.TensorType(onnx_ir.DataType.INT64), shape=onnx_ir.Shape([1]),
    )  # fmt: skip
    node.graph.register_initializer(axes)
    number = tape.op("Cast", [mask], {"to": onnx_ir.DataType.FLOAT})
    any_set = tape.op("Cast", [tape.op("ReduceMax", [number, axes], {"keepdims": 1})], {"to": onnx_ir.DataType.BOOL})
    hidden = tape.op("Not", [any_set])
    for added in tape.nodes:
        added.name = f"{node.name}/{added.op_type}"
        added.metadata_props.update(node.metadata_props)
    for index, value in enumerate(v for n in tape.nodes for v in n.outputs):
        value.name = f"{node.outputs[0].name}/row_{index}"
    node.graph.insert_before(node, tape.nodes)
    onnx_ir.convenience.replace_all_uses_with(node.outputs[0], hidden)
    node.graph.remove(node, safe=True)
