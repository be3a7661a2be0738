"""The types of values in the bodies of If, Loop and Scan, worked out from those around at one point.

ONNX's inference gives a Loop's body no shapes, since a turn may change them. Here a state is taken to have the shape
that it starts with: whether that holds is seen when the part is run, and a part that does not run proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.inference import SMALL_BYTES
from trtconv.rewrite.graph.index import Array, type_of


def body_model(
    node: onnx.NodeProto,
    body: onnx.GraphProto,
    types: Mapping[str, onnx.TypeProto],
    values: Mapping[str, Array],
    opsets: list[onnx.OperatorSetIdProto],
) -> onnx.ModelProto:
    """A body as a model of its own: what it captures is an input with the type that it has around, or a constant.

    `types` and `values` are the types and small constants of the values around. Names are unique in a model.
    """
    known_types = {**types, **_inputs(node, body, types)}
    own = {t.name for t in body.initializer} | {o for n in body.node for o in n.output}
    captured = {v.name for v in body.input} | (set(_used(body)) - own)
    graph = onnx.GraphProto(name="body")
    graph.node.extend(body.node)
    for tensor in body.initializer:
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.ByteSize() <= SMALL_BYTES:
            graph.initializer.append(tensor)
        else:
            graph.input.append(helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    for name in sorted(captured):
        if name in values:
            graph.initializer.append(numpy_helper.from_array(values[name], name))
        elif name in known_types:
            graph.input.append(onnx.ValueInfoProto(name=name, type=known_types[name]))
    graph.output.extend(onnx.ValueInfoProto(name=o.name) for o in body.output)
    return helper.make_model(graph, opset_imports=opsets)


def types_after(
    node: onnx.NodeProto, body: onnx.GraphProto, inner: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """The types of what an If gives, or of a Loop's or Scan's states when it is done: those that the body gives them.

    Where the branches of an If differ, either is one that may come.
    """
    if node.op_type == "If":
        both = zip(node.output, body.output, strict=False)
        return {outer: inner[o.name] for outer, o in both if outer and o.name in inner}
    if node.op_type not in ("Loop", "Scan"):
        return {}
    first = 1 if node.op_type == "Loop" else 0
    scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    count = len(body.input) - (2 if node.op_type == "Loop" else scanned)
    pairs = zip(node.output[:count], body.output[first : first + count], strict=False)
    return {outer: inner[o.name] for outer, o in pairs if outer and o.name in inner}


def _inputs(
    node: onnx.NodeProto, body: onnx.GraphProto, types: Mapping[str, onnx.TypeProto]
) -> dict[str, onnx.TypeProto]:
    """The types of a body's own inputs: the counter and condition of a Loop, states, slices of what a Scan scans."""
    if node.op_type not in ("Loop", "Scan"):
        return {}
    names = [v.name for v in body.input]
    if node.op_type == "Loop":
        scalars = [helper.make_tensor_type_proto(t, []) for t in (onnx.TensorProto.INT64, onnx.TensorProto.BOOL)]
        states = {n: types[s] for n, s in zip(names[2:], node.input[2:], strict=False) if s in types}
        return {**dict(zip(names[:2], scalars, strict=False)), **states}
    scanned = next((a.i for a in node.attribute if a.name == "num_scan_inputs"), 0)
    axes = next((list(a.ints) for a in node.attribute if a.name == "scan_input_axes"), [0] * scanned)
    first = len(names) - scanned
    states = {n: types[s] for n, s in zip(names[:first], node.input[:first], strict=False) if s in types}
    for name, source, axis in zip(names[first:], node.input[first:], axes, strict=False):
        dims = type_of(types[source]).dims if source in types else None
        if dims:
            slice_dims = [d for i, d in enumerate(dims) if i != axis % len(dims)]
            states[name] = helper.make_tensor_type_proto(types[source].tensor_type.elem_type, slice_dims)
    return states


def _used(graph: onnx.GraphProto) -> Iterator[str]:
    for node in graph.node:
        yield from (i for i in node.input if i)
        for body in bodies_of(node):
            yield from _used(body)
    yield from (o.name for o in graph.output)
