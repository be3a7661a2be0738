"""Forms of ONNX that parsers of TensorRT do not read, written in place in those of the same meaning that they do."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.names import free_name
from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import inferred
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS, constant_of

SCANNED, COLLECTED = "scan_input_axes", "scan_output_axes"
CONVOLUTIONS = ("Conv", "ConvTranspose")


def spell_for_parsers(model: onnx.ModelProto, target: Target) -> None:
    """Write each form that the target's parser does not read in another that means the same."""
    write_sparse_weights_out(model.graph)
    count_axes_from_start(model)
    if target.generation == 8:
        write_constants_as_tensors(model)
        write_kernel_shapes(model)
        name_loop_conditions_apart(model)


def write_constants_as_tensors(model: onnx.ModelProto) -> None:
    """Give each Constant of numbers the attribute `value`; the values are the same.

    The parser of 8.6.0 has no axes, bounds or pads where they stand in `value_int`, `value_ints` and their like, which
    ONNX has from opset 12 on (measured on an H200: benchmarks/results/gpu_foreign_graphs.json).
    """
    for node in walk_nodes(model.graph.node):
        if node.op_type != "Constant" or node.domain not in DEFAULT_DOMAINS:
            continue
        tensor = constant_of(node)
        if tensor is not None and node.attribute[0].name != "value":
            del node.attribute[:]
            node.attribute.append(helper.make_attribute("value", tensor))


def write_sparse_weights_out(graph: onnx.GraphProto) -> None:
    """Put a dense initializer in the place of each sparse one, which no parser reads."""
    for sparse in graph.sparse_initializer:
        values, places = numpy_helper.to_array(sparse.values), numpy_helper.to_array(sparse.indices)
        dense = np.zeros(tuple(sparse.dims), values.dtype)
        # ONNX has places as [count] in the flat tensor, or as [count, rank].
        dense[np.unravel_index(places, dense.shape) if places.ndim == 1 else tuple(places.T)] = values
        graph.initializer.append(numpy_helper.from_array(dense, sparse.values.name))
    del graph.sparse_initializer[:]


def write_kernel_shapes(model: onnx.ModelProto) -> None:
    """Give each convolution with computed weights its `kernel_shape`, which ONNX lets out where the weights tell it.

    The parser of 8.6.0 reads it from constants alone, and takes no weights behind DequantizeLinear without it.
    """
    constants = {t.name for t in model.graph.initializer}
    bare = [
        n
        for n in walk_nodes(model.graph.node)
        if n.op_type in CONVOLUTIONS
        and n.domain in DEFAULT_DOMAINS
        and n.input[1] not in constants
        and not any(a.name == "kernel_shape" for a in n.attribute)
    ]
    types = inferred(model).types if bare else {}
    for node in bare:
        dims = types[node.input[1]].tensor_type.shape.dim[2:] if node.input[1] in types else []
        if dims and all(d.HasField("dim_value") for d in dims):
            node.attribute.append(helper.make_attribute("kernel_shape", [d.dim_value for d in dims]))


def count_axes_from_start(model: onnx.ModelProto) -> None:
    """Count the axes of Scan from the first one: of parsers up to TensorRT-RTX 1.7 none takes negative ones.

    The rank of what is scanned follows from the body, whose value has one axis less.
    """
    for node in walk_nodes(model.graph.node):
        if node.op_type != "Scan" or node.domain not in DEFAULT_DOMAINS:
            continue
        attributes = {a.name: a for a in node.attribute}
        body, count = attributes["body"].g, attributes["num_scan_inputs"].i
        scanned = list(body.input)[len(body.input) - count :]
        collected = list(body.output)[len(body.input) - count :]
        for name, values in ((SCANNED, scanned), (COLLECTED, collected)):
            axes = list(attributes[name].ints) if name in attributes else []
            for position, axis in enumerate(axes):
                if axis < 0 and values[position].type.tensor_type.HasField("shape"):
                    axes[position] = axis + len(values[position].type.tensor_type.shape.dim) + 1
            if axes:
                attributes[name].ints[:] = axes


def name_loop_conditions_apart(model: onnx.ModelProto) -> None:
    """Put an Identity between an input or output of the model and a Loop that has it for its condition.

    The parser of 8.6.0 gives the condition the name that it has within the body: an engine with the input `go` asked
    for `c` (measured on an H200).
    """
    graph = model.graph
    public = {value.name for value in (*graph.input, *graph.output)}
    names = {name for node in walk_nodes(graph.node) for name in (*node.input, *node.output)} | public
    for position, node in reversed(list(enumerate(graph.node))):
        if node.op_type != "Loop" or node.domain not in DEFAULT_DOMAINS or node.input[1] not in public:
            continue
        condition = free_name(f"{node.input[1]}/condition", names)
        graph.node.insert(position, helper.make_node("Identity", [node.input[1]], [condition], name=condition))
        node.input[1] = condition
