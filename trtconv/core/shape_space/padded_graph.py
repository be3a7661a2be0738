"""Pad in front of an ONNX graph and Slice behind it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.dim_names import axis_name
from trtconv.core.model.file import set_metadata
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import INPUTS_KEY, PADDING_KEY, SPACE_KEY
from trtconv.core.shape_space.padding import CroppedAxis, PaddedInput, Padding
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec

if TYPE_CHECKING:
    import onnx

PREFIX = "trtconv_pad"
OLDEST_OPSET = 11
ONNX_MODES = {"zero": "constant", "reflect": "reflect", "edge": "edge"}


def insert_padding(
    model: onnx.ModelProto, padding: Padding, specs: tuple[TensorSpec, ...], space: ShapeSpace
) -> onnx.ModelProto:
    """A copy whose inputs take the sizes of `space`: padded inside, its outputs cut back, both recorded.

    Raises InvalidRequestError for a model of an opset without Pad amounts as an input, and one padded already.
    """
    import onnx

    if any(p.key == PADDING_KEY for p in model.metadata_props):
        raise InvalidRequestError("the model pads its inputs already", hint="start from the model before that")
    opset = opset_of(model)
    if opset < OLDEST_OPSET:
        raise InvalidRequestError(
            f"opset {opset} has no Pad with amounts that are computed", hint="convert the model to opset 11 or newer"
        )
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    passed_through = {v.name for v in graph.input} & {v.name for v in graph.output}
    named = {d for s in specs for i in padding.inputs if i.name == s.name for d in s.names()}
    own = {i.name: f"{i.name}_padded" for i in padding.inputs}
    own |= {c.output: f"{c.output}_uncut" for c in padding.outputs if c.output not in passed_through}
    _rename_dims(graph, {n: f"{n}_padded" for n in named if _is_padded(n, padding, specs)})
    _rename_values(graph, own)
    front = [node for item in padding.inputs for node in _pad(graph, item, own[item.name])]
    groups: dict[str, list[CroppedAxis]] = {}
    for cut in padding.outputs:
        if cut.output in own:
            groups.setdefault(cut.output, []).append(cut)
    back = [node for output, axes in groups.items() for node in _slice(graph, own[output], output, axes)]
    _surround(graph, front, back)
    _describe_inputs(graph, specs, space)
    _open_outputs(graph, padding)
    set_metadata(copy, PADDING_KEY, padding.as_text())
    set_metadata(copy, SPACE_KEY, str(space))
    set_metadata(copy, INPUTS_KEY, "\n".join(str(s) for s in specs))
    return copy


def _surround(graph: onnx.GraphProto, front: list[onnx.NodeProto], back: list[onnx.NodeProto]) -> None:
    """Put nodes before and behind those of the graph.

    Several axes and cuts ask for the size of one axis, which is computed once, before all that use it.
    """
    _declare_sizes(graph, [*front, *back], {v.name: len(v.type.tensor_type.shape.dim) for v in graph.input})
    first = {node.name: node for node in front}
    last = {node.name: node for node in back if node.name not in first}
    ordered = [*first.values(), *graph.node, *last.values()]
    del graph.node[:]
    graph.node.extend(ordered)


def _declare_sizes(graph: onnx.GraphProto, nodes: list[onnx.NodeProto], ranks: Mapping[str, int]) -> None:
    """The types of the sizes that are computed, which older shape inference does not find on its own."""
    import onnx

    lengths: dict[str, int] = {}
    for node in nodes:
        if node.op_type in ("Shape", "Gather", "Add", "Div", "Mul", "Sub", "Concat"):
            length = {"Shape": ranks.get(node.input[0], 0), "Concat": len(node.input)}.get(node.op_type, 1)
            lengths[node.output[0]] = length
    graph.value_info.extend(
        onnx.helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [n]) for name, n in lengths.items()
    )


def _is_padded(name: str, padding: Padding, specs: tuple[TensorSpec, ...]) -> bool:
    axes = {i.name: dict(i.axes) for i in padding.inputs}
    return any(d == name and axis in axes.get(s.name, {}) for s in specs for axis, d in enumerate(s.dims))


def _constant(graph: onnx.GraphProto, values: list[int]) -> str:
    """The name of an int64 vector, made when it is not there."""
    import onnx

    name = f"{PREFIX}_{'_'.join(map(str, values))}"
    if all(t.name != name for t in graph.initializer):
        graph.initializer.append(onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(values)], values))
    return name


def _size(graph: onnx.GraphProto, value: str, axis: int) -> tuple[list[onnx.NodeProto], str]:
    """Nodes that give the size of one axis as an int64 vector of one element."""
    import onnx

    shape, size = f"{PREFIX}_{value}_shape_{axis}", f"{PREFIX}_{value}_size_{axis}"
    make = onnx.helper.make_node
    index = _constant(graph, [axis])
    return [make("Shape", [value], [shape], shape), make("Gather", [shape, index], [size], size, axis=0)], size


def _pad(graph: onnx.GraphProto, item: PaddedInput, output: str) -> list[onnx.NodeProto]:
    import onnx

    make = onnx.helper.make_node
    rank = next(len(v.type.tensor_type.shape.dim) for v in graph.input if v.name == item.name)
    nodes, amounts = [], {}
    for axis, multiple in item.axes:
        sized, size = _size(graph, item.name, axis)
        names = [f"{PREFIX}_{item.name}_{step}_{axis}" for step in ("more", "units", "whole", "amount")]
        more, units, whole, amounts[axis] = names
        step = _constant(graph, [multiple])
        # Not Mod of the negative size: TensorRT 8.6 has no Mod in every place, and Div of positive sizes is exact.
        nodes += [
            *sized,
            make("Add", [size, _constant(graph, [multiple - 1])], [more], more),
            make("Div", [more, step], [units], units),
            make("Mul", [units, step], [whole], whole),
            make("Sub", [whole, size], [amounts[axis]], amounts[axis]),
        ]
    zero = _constant(graph, [0])
    amount = f"{PREFIX}_{item.name}_amounts"
    ends = [amounts.get(axis, zero) for axis in range(rank)]
    nodes.append(make("Concat", [zero] * rank + ends, [amount], amount, axis=0))
    mode = ONNX_MODES[item.mode]
    nodes.append(make("Pad", [item.name, amount], [output], f"{PREFIX}_{item.name}", mode=mode))
    return nodes


def _slice(graph: onnx.GraphProto, value: str, output: str, cuts: list[CroppedAxis]) -> list[onnx.NodeProto]:
    import onnx

    make = onnx.helper.make_node
    nodes, ends = [], []
    for cut in cuts:
        sized, end = _size(graph, cut.input, cut.input_axis)
        nodes += sized
        stem = f"{PREFIX}_{output}_{cut.axis}"
        if cut.numerator != 1:
            nodes.append(make("Mul", [end, _constant(graph, [cut.numerator])], [f"{stem}_times"], f"{stem}_times"))
            end = f"{stem}_times"
        if cut.denominator != 1:
            rounded_up, quotient = f"{stem}_up", f"{stem}_kept"
            nodes.append(make("Add", [end, _constant(graph, [cut.denominator - 1])], [rounded_up], rounded_up))
            nodes.append(make("Div", [rounded_up, _constant(graph, [cut.denominator])], [quotient], quotient))
            end = quotient
        ends.append(end)
    if len(ends) > 1:
        all_ends = f"{PREFIX}_{output}_ends"
        nodes.append(make("Concat", ends, [all_ends], all_ends, axis=0))
        ends = [all_ends]
    starts, axes = _constant(graph, [0] * len(cuts)), _constant(graph, [c.axis for c in cuts])
    nodes.append(make("Slice", [value, starts, ends[0], axes], [output], f"{PREFIX}_{output}_cut"))
    return nodes


def _rename_values(graph: onnx.GraphProto, own: Mapping[str, str], top: bool = True) -> None:
    """Give the inner values of padded inputs and cut outputs their own names, in bodies of If, Loop and Scan too."""
    for node in graph.node:
        node.input[:] = [own.get(n, n) for n in node.input]
        node.output[:] = [own.get(n, n) for n in node.output]
        for body in bodies_of(node):
            _rename_values(body, own, False)
    for value in graph.value_info if top else (*graph.value_info, *graph.output):
        value.name = own.get(value.name, value.name)


def _rename_dims(graph: onnx.GraphProto, renamed: Mapping[str, str]) -> None:
    """Inside, a named dim is the padded one."""
    for value in (*graph.value_info, *graph.output):
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param:
                dim.dim_param = re.sub(r"[A-Za-z_]\w*", lambda m: renamed.get(m[0], m[0]), dim.dim_param)
    for node in graph.node:
        for body in bodies_of(node):
            _rename_dims(body, renamed)


def _open_outputs(graph: onnx.GraphProto, padding: Padding) -> None:
    """A cut axis is named after the input's dim, or, where it has another size, after itself."""
    inputs = {v.name: v for v in graph.input}
    for value in graph.output:
        for cut in (c for c in padding.outputs if c.output == value.name):
            source = inputs[cut.input].type.tensor_type.shape.dim[cut.input_axis]
            dim = value.type.tensor_type.shape.dim[cut.axis]
            if not source.dim_param:
                dim.dim_value = cut.size(source.dim_value)
            elif cut.numerator == cut.denominator:
                dim.dim_param = source.dim_param
            else:
                dim.dim_param = axis_name(value.name, cut.axis)


def _describe_inputs(graph: onnx.GraphProto, specs: tuple[TensorSpec, ...], space: ShapeSpace) -> None:
    """The inputs' dims as they are before padding: by name, or the size of a dim that has only one."""
    by_name = {s.name: s for s in specs}
    for value in graph.input:
        if value.name in by_name:
            for dim, spec_dim in zip(value.type.tensor_type.shape.dim, by_name[value.name].dims, strict=True):
                if isinstance(spec_dim, str) and spec_dim in space and space[spec_dim].min == space[spec_dim].max:
                    dim.dim_value = space[spec_dim].min
                elif isinstance(spec_dim, str):
                    dim.dim_param = spec_dim
