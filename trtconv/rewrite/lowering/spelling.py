"""Forms of ONNX that parsers of TensorRT do not read, written in place in those of the same meaning that they do."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import bodies_of, graphs_of, replace_nodes, walk_nodes
from trtconv.core.model.names import free_name, names_in
from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import inferred
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS, constant_of

SCANNED, COLLECTED = "scan_input_axes", "scan_output_axes"
CONVOLUTIONS = ("Conv", "ConvTranspose")
# Their bounds and values are read from constants alone.
READ_AS_CONSTANTS = ("Clip", "Pad")


def spell_for_parsers(model: onnx.ModelProto, target: Target) -> None:
    """Write each form that the target's parser does not read in another that means the same."""
    write_sparse_weights_out(model.graph)
    count_axes_from_start(model)
    if target.generation == 8:
        write_constants_as_tensors(model)
        write_kernel_shapes(model)
        name_loop_conditions_apart(model)
        leave_infinite_bounds_out(model.graph)


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
    names = names_in(graph)
    for position, node in reversed(list(enumerate(graph.node))):
        if node.op_type != "Loop" or node.domain not in DEFAULT_DOMAINS or node.input[1] not in public:
            continue
        condition = free_name(f"{node.input[1]}/condition", names)
        graph.node.insert(position, helper.make_node("Identity", [node.input[1]], [condition], name=condition))
        node.input[1] = condition


def leave_infinite_bounds_out(graph: onnx.GraphProto, outer: frozenset[str] = frozenset()) -> None:
    """Write a Clip with an infinite constant for one bound as the Max or Min that is left; 8.6.0 refuses that bound.

    `outer` names the infinite constants of the graphs around.
    """
    infinite = outer | _infinite_constants(graph)
    for node in graph.node:
        for body in bodies_of(node):
            leave_infinite_bounds_out(body, infinite)
        if node.op_type != "Clip" or node.domain not in DEFAULT_DOMAINS:
            continue
        value, low, high = (*node.input, "", "")[:3]
        if low in infinite and high in infinite:
            node.op_type, inputs = "Identity", [value]
        elif low in infinite and high:
            node.op_type, inputs = "Min", [value, high]
        elif high in infinite and low:
            node.op_type, inputs = "Max", [value, low]
        else:
            continue
        del node.input[:]
        node.input.extend(inputs)


def gather_infinities(model: onnx.ModelProto) -> None:
    """Let the model gather each infinite constant of one element from a constant of two.

    The engines of 8.6.0 have 1e38 for it where Where, a comparison or a scatter reads it: a row that is masked
    throughout had 1/n for NaN after its Softmax, and `x == inf` was never true. Constants of more elements keep their
    infinities (measured on an H200: benchmarks/results/gpu_infinities.json). To be called after all rules, which tell a
    mask by its constant.
    """
    graph, names = model.graph, set[str]()
    # Bodies first: a graph whose nodes are replaced has other bodies than before.
    for part in reversed(list(graphs_of(graph))):
        infinite = _infinite_constants(part)
        if not infinite and not any(_infinity_in(node) for node in part.node):
            continue
        names = names or names_in(graph)
        constants = [t for t in part.initializer if t.name in infinite]
        nodes = [node for tensor in constants for node in _gathered(graph, part, tensor, tensor.name, names)]
        gathered = {node.output[0] for node in nodes}
        for node in part.node:
            nodes += _without_infinity(graph, part, node, names)
        for tensor in constants:
            if tensor.name in gathered:
                part.initializer.remove(tensor)
        replace_nodes(part, nodes)


def _infinite_constants(part: onnx.GraphProto) -> frozenset[str]:
    """The constants of one graph, without its bodies, that are one infinite number and no input."""
    inputs = {value.name for value in part.input}
    names = {t.name for t in part.initializer if t.name not in inputs and _is_one_infinity(t)}
    return frozenset(names | {n.output[0] for n in part.node if n.op_type == "Constant" and _infinity_in(n)})


def _infinity_in(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The infinity that a Constant holds, or that a ConstantOfShape fills with."""
    if node.op_type not in ("Constant", "ConstantOfShape") or node.domain not in DEFAULT_DOMAINS:
        return None
    tensor = constant_of(node)
    return tensor if tensor is not None and _is_one_infinity(tensor) else None


def _is_one_infinity(tensor: onnx.TensorProto) -> bool:
    if tensor.data_location == onnx.TensorProto.EXTERNAL:  # weights, which are not read here
        return False
    if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16) or np.prod(tensor.dims) != 1:
        return False
    return bool(np.isinf(numpy_helper.to_array(tensor)).all())


def _without_infinity(
    graph: onnx.GraphProto, part: onnx.GraphProto, node: onnx.NodeProto, names: set[str]
) -> list[onnx.NodeProto]:
    """The node, or what gathers the infinity that it holds."""
    tensor = _infinity_in(node)
    if tensor is None:
        return [node]
    if node.op_type == "Constant":
        return _gathered(graph, part, tensor, node.output[0], names) or [node]
    scalar = numpy_helper.from_array(numpy_helper.to_array(tensor).reshape(()))
    infinity = free_name(f"{node.output[0]}/infinity", names)
    expand = helper.make_node("Expand", [infinity, node.input[0]], node.output[:1], name=node.name)
    return [*_gathered(graph, part, scalar, infinity, names), expand]


def _gathered(
    graph: onnx.GraphProto, part: onnx.GraphProto, tensor: onnx.TensorProto, name: str, names: set[str]
) -> list[onnx.NodeProto]:
    """The node of `part` whose result `name` is the infinity, none where only nodes that want a constant read it.

    Beside other readers they read a constant of their own.
    """
    infinity = numpy_helper.to_array(tensor)
    # Names are those of a graph and its bodies: another branch may have the same one for something else.
    readers = [n for n in walk_nodes(part.node) if name in n.input]
    on_constants = [n for n in readers if n.op_type in READ_AS_CONSTANTS and name not in n.input[:1]]
    if readers and len(on_constants) == len(readers):
        return []
    if on_constants:
        constant = free_name(f"{name}/constant", names)
        graph.initializer.append(numpy_helper.from_array(infinity, constant))
        for node in on_constants:
            node.input[1:] = [constant if i == name else i for i in node.input[1:]]
    # A product of constants, the logarithm of zero or a slice Myelin folds, and has 1e38 again; not what is gathered.
    inputs = []
    values = {"or-zero": np.asarray([infinity.item(), 0], infinity.dtype), "first": np.zeros(infinity.shape, np.int64)}
    for part, value in values.items():
        inputs.append(free_name(f"{name}/{part}", names))
        graph.initializer.append(numpy_helper.from_array(value, inputs[-1]))
    return [helper.make_node("Gather", inputs, [name], name=f"{name}/gather")]
