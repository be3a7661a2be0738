"""Attention over rows that a mask hides altogether.

torch gives 0 for such a row: its mask is -inf, and its softmax is made safe. torch.onnx writes the same operations with
the lowest finite number in place of -inf, so that the NaN which its graph looks for never comes, and the row becomes
the mean of all values. Padding at the left under a causal mask, or an empty sentence of a batch, is such a row; so is
one in which every score that the mask leaves is -inf itself.

Here the mask adds -inf, and the rows are those whose sums all are -inf, which needs no NaN of an engine. Of a mask
that only sizes make they are read off the mask, so that nothing is left of them where no row is hidden.
"""

from __future__ import annotations

from typing import Any

LOWEST = -3e38
LAYER = "torch.nn.modules.activation.MultiheadAttention"
PARTS = ("Cast", "Gather", "Identity", "Mul", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze")
ATTENTION = "aten.scaled_dot_product_attention"
# A mask passes through these; of the latter, through every input.
SEVERAL = ("Add", "Concat", "Where")
PUT_TOGETHER = (*SEVERAL, "Cast", "Expand", "Identity", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze")


def hide_masked_rows(model: Any) -> int:
    """Replace `IsNaN(Softmax(scores + Where(mask, 0, lowest)))` by "all sums of the row are -inf", in place.

    Works on an ir.Model; returns how many were replaced. Casts between the operators, and a factor, are passed.
    """
    count = 0
    for node in list(model.graph.all_nodes()):
        if node.op_type != "IsNaN":
            continue
        softmax = _producer(node.inputs[0], "Softmax")
        if softmax is None or _axis(softmax) not in (-1, _rank(softmax) - 1):
            continue
        choice = _masking(_producer(softmax.inputs[0], "Add"))
        if choice is not None:
            _add_infinity(choice)
            _replace(node, choice.inputs[0], softmax.inputs[0])
            count += 1
    return count


def zero_hidden_rows(model: Any) -> int:
    """0 for the rows that a mask of numbers hides altogether, in place on an ir.Model; how many products have such.

    That is attention as torch's own function computes it, under a mask that is -inf where values say so: padding that
    comes as an input. The exporter writes a plain Softmax, which is NaN there. So is what torch runs for a layer that
    attends to its own input, which no trace has (`torch._native_multi_head_attention`): there NaN stays.
    """
    count = 0
    for node in list(model.graph.all_nodes()):
        if node.op_type != "Softmax" or ATTENTION not in node.metadata_props.get("pkg.torch.onnx.fx_node", ""):
            continue
        addition = _producer(node.inputs[0], "Add")
        if addition is None or _axis(node) not in (-1, _rank(node) - 1):
            continue
        if any(user.op_type == "IsNaN" for user, _ in node.outputs[0].uses()):
            continue
        if _runs_natively(node, addition):
            continue
        if any(_is_infinite_somewhere(v) and _depends_on_values(v) for v in addition.inputs):
            _choose_zero(node)
            count += 1
    return count


def _runs_natively(softmax: Any, addition: Any) -> bool:
    """Is this torch's own layer, with queries and keys of one projection?"""
    if LAYER not in softmax.metadata_props.get("pkg.torch.onnx.class_hierarchy", ""):
        return False
    product = next((p for p in (_producer(v, "MatMul") for v in addition.inputs) if p is not None), None)
    return product is not None and _source(product.inputs[0]) is _source(product.inputs[1])


def _source(value: Any) -> Any:
    """What a query or a key is a scaled part of."""
    while (node := value.producer()) is not None and node.op_type in PARTS:
        value = node.inputs[0]
    return value


def _is_infinite_somewhere(value: Any) -> bool:
    """Is -inf chosen somewhere in what a mask is put together of?"""
    node = value.producer() if value is not None else None
    if node is None or node.op_type not in PUT_TOGETHER:
        return False
    inputs = node.inputs[1:] if node.op_type == "Where" else node.inputs
    if node.op_type == "Where" and any(_number(v) == float("-inf") for v in inputs):
        return True
    return any(_is_infinite_somewhere(v) for v in (inputs if node.op_type in SEVERAL else inputs[:1]))


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


def _masking(addition: Any) -> Any:
    """The `Where(mask, 0, lowest)` of a sum of scores and it; None for another sum. -inf for the lowest was put in."""
    for value in addition.inputs if addition is not None else ():
        choice = _producer(value, "Where")
        if choice is None:
            continue
        _, usual, hidden = choice.inputs
        if _number(usual) == 0.0 and (_number(hidden) or 0.0) < LOWEST:
            return choice
    return None


def _number(value: Any) -> float | None:
    import onnx_ir

    tensor = onnx_ir.convenience.get_const_tensor(value) if value is not None else None
    return float(tensor.numpy().reshape(-1)[0]) if tensor is not None and tensor.size == 1 else None


def _add_infinity(choice: Any) -> None:
    """Let the mask add -inf, as torch's does."""
    import numpy as np
    import onnx_ir

    hidden = choice.inputs[2]
    values = onnx_ir.convenience.get_const_tensor(hidden).numpy()
    infinity = _initializer(choice, f"{choice.outputs[0].name}/hidden", np.full_like(values, -np.inf))
    choice.replace_input_with(2, infinity)


def _initializer(node: Any, name: str, values: Any) -> Any:
    import onnx_ir

    tensor = onnx_ir.tensor(values)
    value = onnx_ir.Value(name=name, const_value=tensor, type=onnx_ir.TensorType(tensor.dtype), shape=tensor.shape)
    node.graph.register_initializer(value)
    return value


def _depends_on_values(value: Any) -> bool:
    """True when an input of the graph reaches a value by more than its sizes."""
    waiting, passed = [value], set()
    while waiting:
        item = waiting.pop()
        if item is None or item.name in passed:
            continue
        passed.add(item.name)
        node = item.producer()
        if node is None and item.is_graph_input():
            return True
        if node is not None and node.op_type not in ("Shape", "Size"):
            waiting += node.inputs
    return False


def _replace(node: Any, mask: Any, sums: Any) -> None:
    """The rows in place of the node: by their sums, or by the mask where that is made of sizes."""
    import onnx_ir

    tape = onnx_ir.tape.Tape()
    if _depends_on_values(mask):
        mask = _scored(tape, node, sums)
    hidden = _hidden_rows(tape, node, mask)
    _name(tape, node)
    node.graph.insert_before(node, tape.nodes)
    onnx_ir.convenience.replace_all_uses_with(node.outputs[0], hidden)
    node.graph.remove(node, safe=True)


def _choose_zero(softmax: Any) -> None:
    """0 for the softmax of rows all of whose sums are -inf."""
    import numpy as np
    import onnx_ir

    tape, output, name = onnx_ir.tape.Tape(), softmax.outputs[0], softmax.outputs[0].name
    uses = list(output.uses())
    hidden = _hidden_rows(tape, softmax, _scored(tape, softmax, softmax.inputs[0]))
    nothing = np.array(0.0, output.dtype.numpy() if output.dtype is not None else np.float32)
    chosen = tape.op("Where", [hidden, _initializer(softmax, f"{name}/nothing", nothing), output])
    chosen.dtype, chosen.shape = output.dtype, output.shape
    _name(tape, softmax)
    softmax.graph.insert_after(softmax, tape.nodes)
    for user, index in uses:
        user.replace_input_with(index, chosen)


def _scored(tape: Any, node: Any, sums: Any) -> Any:
    """Which sums of scores and mask are not -inf."""
    import numpy as np

    # Not the largest sum of a row: ONNX Runtime's ReduceMax passes over a NaN beside -inf, and the row stays NaN.
    lowest = np.array(-np.inf, sums.dtype.numpy() if sums.dtype is not None else np.float32)
    lowest = _initializer(node, f"{node.outputs[0].name}/lowest", lowest)
    return tape.op("Not", [tape.op("Equal", [sums, lowest])])


def _hidden_rows(tape: Any, node: Any, mask: Any) -> Any:
    """Which rows of the mask are false altogether."""
    import numpy as np
    import onnx_ir

    axes = _initializer(node, f"{node.outputs[0].name}/axes", np.array([-1], np.int64))
    # TensorRT takes no extremum of bools.
    number = tape.op("Cast", [mask], {"to": onnx_ir.DataType.FLOAT})
    some = tape.op("Cast", [tape.op("ReduceMax", [number, axes], {"keepdims": 1})], {"to": onnx_ir.DataType.BOOL})
    return tape.op("Not", [some])


def _name(tape: Any, node: Any) -> None:
    """Name what was added after the node that it belongs to."""
    for added in tape.nodes:
        added.name = f"{node.name}/{added.op_type}"
        added.metadata_props.update(node.metadata_props)
    for index, value in enumerate(v for n in tape.nodes for v in n.outputs):
        value.name = f"{node.outputs[0].name}/row_{index}"
