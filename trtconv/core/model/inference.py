"""ONNX's shape inference with data propagation, bounded: a stranger's sizes decide what it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, walk_nodes

if TYPE_CHECKING:
    import onnx

# Of a vector that inference may take for a shape.
MOST_DIMS = 1 << 20
SMALL_BYTES = 4096
# What onnx propagates element by element, with over 100 bytes for each: Range(1e9) + x took over 100 GB.
_ELEMENTWISE = frozenset({"Add", "Sub", "Mul"})
# Each dim of a result is one of an input, or smaller: graphs of these alone need no look at inferred sizes first.
_KEEPS_SIZES = _ELEMENTWISE | frozenset(
    [
        "Abs",
        "BatchNormalization",
        "Cast",
        "Clip",
        "Div",
        "Erf",
        "Exp",
        "Gemm",
        "Identity",
        "LayerNormalization",
        "LeakyRelu",
        "Log",
        "MatMul",
        "Max",
        "Min",
        "Neg",
        "Pow",
        "Reciprocal",
        "ReduceL2",
        "ReduceMax",
        "ReduceMean",
        "ReduceSum",
        "Relu",
        "Shape",
        "Sigmoid",
        "Softmax",
        "Softplus",
        "Sqrt",
        "Squeeze",
        "Tanh",
        "Transpose",
        "Unsqueeze",
    ]
)


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which initializers over 4 KiB, and those on disk, are inputs of the same name, dtype and dims."""
    import onnx

    light = onnx.ModelProto(ir_version=max(model.ir_version, 4))
    light.opset_import.extend(model.opset_import)
    light.functions.extend(model.functions)
    graph, source = light.graph, model.graph
    graph.name = source.name or "graph"
    graph.node.extend(source.node)
    graph.input.extend(source.input)
    for output in source.output:
        light_output = graph.output.add()
        light_output.CopyFrom(output)
        # Dims that the exporter wrote would win over those that inference finds, also where they are stale.
        if light_output.type.HasField("tensor_type"):
            light_output.type.tensor_type.ClearField("shape")
    input_names = {v.name for v in source.input}
    for tensor in source.initializer:
        # One that is an input as well is a default: inference must not read its value.
        if tensor.name in input_names:
            continue
        if tensor.data_location != onnx.TensorProto.EXTERNAL and tensor.ByteSize() <= SMALL_BYTES:
            graph.initializer.add().CopyFrom(tensor)
        else:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return light


def infer(light: onnx.ModelProto) -> onnx.ModelProto:
    """Inference with data propagation; without it when that fails; the model as it is when that fails too."""
    from onnx import shape_inference

    for step in (infer_propagated, shape_inference.infer_shapes):
        try:
            return step(light)
        except (shape_inference.InferenceError, RuntimeError, ValueError, TypeError):
            continue
    return light


def infer_propagated(model: onnx.ModelProto, *, strict: bool = False) -> onnx.ModelProto:
    """Infer shapes with the values of shapes; without those where a sum or product of a huge vector would be one.

    Raises what `onnx.shape_inference.infer_shapes` does.
    """
    from onnx import shape_inference

    if _may_propagate_much(model):
        plain = shape_inference.infer_shapes(model, strict_mode=strict)
        if any(_propagates_much(graph) for graph in graphs_of(plain.graph)):
            return plain
    return shape_inference.infer_shapes(model, strict_mode=strict, data_prop=True)


def inferred_types(model: onnx.ModelProto) -> dict[str, int]:
    """The element types of all tensors that ONNX infers, in the graph and in bodies, by name; 0 where it is open."""
    from onnx import shape_inference

    types: dict[str, int] = {}
    for graph in graphs_of(shape_inference.infer_shapes(model).graph):
        types |= {v.name: v.type.tensor_type.elem_type for v in (*graph.input, *graph.value_info, *graph.output)}
        types |= {t.name: t.data_type for t in graph.initializer}
    return types


def _may_propagate_much(model: onnx.ModelProto) -> bool:
    """False where no size is beyond the bound and no operator makes a size that its inputs do not have."""
    if model.functions or any(n.op_type not in _KEEPS_SIZES or n.domain for n in walk_nodes(model.graph.node)):
        return True
    graph = model.graph
    shapes = [[d.dim_value for d in v.type.tensor_type.shape.dim] for v in (*graph.input, *graph.output)]
    return any(d > MOST_DIMS for dims in (*shapes, *(t.dims for t in graph.initializer)) for d in dims)


def _propagates_much(graph: onnx.GraphProto) -> bool:
    long = {v.name for v in (*graph.input, *graph.value_info, *graph.output) if _is_long(v.type.tensor_type.shape.dim)}
    long |= {t.name for t in graph.initializer if len(t.dims) == 1 and t.dims[0] > MOST_DIMS}
    return bool(long) and any(n.op_type in _ELEMENTWISE and long.intersection(n.input) for n in graph.node)


def _is_long(dims: object) -> bool:
    return len(dims) == 1 and dims[0].dim_value > MOST_DIMS  # type: ignore[arg-type, index]
