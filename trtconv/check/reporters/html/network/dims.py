"""The dims of every tensor of a graph as text, in the names of the graph's inputs: `H/2`, `4*W`, `N*T`.

ONNX's own shape inference loses what a Reshape or a Slice computes from a shape. With sizes in the place of names it
loses much less, since it follows integers; so it is run at three assignments of sizes, and what a dim is follows from
the three. Nothing is executed, and no weight is read.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.dim_names import axis_name
from trtconv.core.model.inference import infer_propagated

if TYPE_CHECKING:
    import onnx

    from trtconv.core.shape_space.space import ShapeSpace

UNKNOWN = "?"
# Constants of more elements say nothing about shapes.
_MOST_ELEMENTS = 4096
_DIVISORS = (2, 4, 8, 16, 32, 64)
_BATCHES, _SIZES = (2, 3, 5), (64, 128, 224)
_ORDERS = tuple(itertools.permutations(range(3)))

Dims = tuple[int | str, ...]
Assignment = Mapping[str, int]


def infer_dims(model: onnx.ModelProto, space: ShapeSpace) -> dict[str, tuple[int, Dims]]:
    """Element type (ONNX's number) and dims by tensor name; a dim is an integer, a term of the inputs' dims, or `?`."""
    light = _without_weights(model)
    names = _input_dims(light)
    stated = _inferred(light)
    outputs = {name for node in light.graph.node for name in node.output if name}
    if outputs <= set(stated) and not any(isinstance(d, str) and d not in names for _, s in stated.values() for d in s):
        return stated
    assignments = _assignments(names, space)
    runs = [_inferred(_with_sizes(light, sizes)) for sizes in assignments]
    tensors = dict(stated)
    for name, (kind, _) in runs[0].items():
        sized = [run[name][1] if name in run else None for run in runs]
        tensors[name] = (kind, _combined(sized, stated[name][1] if name in stated else None, assignments, names))
    return tensors


def _combined(
    runs: Sequence[Dims | None], stated: Dims | None, assignments: Sequence[Assignment], names: Sequence[str]
) -> Dims:
    """What the file says where it says a number or a name of an input, else what the three runs say."""
    complete = [dims for dims in runs if dims is not None]
    ranks = {len(dims) for dims in complete}
    if len(ranks) != 1 or len(complete) != len(runs):
        return stated or ()
    result: list[int | str] = []
    for axis in range(ranks.pop()):
        statement = stated[axis] if stated is not None and axis < len(stated) else UNKNOWN
        sizes = [size for dims in complete if isinstance(size := dims[axis], int)]
        if isinstance(statement, int) or statement in names:
            result.append(statement)
        else:
            result.append(describe_dim(sizes, assignments) if len(sizes) == len(runs) else UNKNOWN)
    return tuple(result)


def describe_dim(sizes: Sequence[int], assignments: Sequence[Assignment]) -> int | str:
    """The one simple term of the dims that takes these values at these assignments; `?` where there is none."""
    if len(set(sizes)) == 1:
        return sizes[0]
    for text, compute in _terms(list(assignments[0])):
        if all(compute(sizes_of) == size for size, sizes_of in zip(sizes, assignments, strict=True)):
            return text
    for name in assignments[0]:
        # A dim of 0, as a cache before its first step has, says nothing of a factor.
        factors = {size / sizes_of[name] for size, sizes_of in zip(sizes, assignments, strict=True) if sizes_of[name]}
        factor = factors.pop() if len(factors) == 1 else math.nan
        if factor.is_integer() and all(s == factor * of[name] for s, of in zip(sizes, assignments, strict=True)):
            return f"{factor:.0f}*{name}"
        offsets = {size - sizes_of[name] for size, sizes_of in zip(sizes, assignments, strict=True)}
        if len(offsets) == 1:
            return f"{name}{offsets.pop():+d}"
    return UNKNOWN


def _terms(names: Sequence[str]) -> Iterator[tuple[str, Callable[[Assignment], int]]]:
    for name in names:
        yield name, lambda sizes, n=name: sizes[n]  # type: ignore[misc]
        for divisor in _DIVISORS:
            yield f"{name}/{divisor}", lambda sizes, n=name, d=divisor: -(-sizes[n] // d)  # type: ignore[misc]
            yield f"floor({name}/{divisor})", lambda sizes, n=name, d=divisor: sizes[n] // d  # type: ignore[misc]
    for index, name in enumerate(names):
        for other in names[index:]:
            yield f"{name}*{other}", lambda sizes, a=name, b=other: sizes[a] * sizes[b]  # type: ignore[misc]
            for divisor in _DIVISORS:
                yield (
                    f"{name}/{divisor}*{other}/{divisor}",
                    lambda sizes, a=name, b=other, d=divisor: -(-sizes[a] // d) * -(-sizes[b] // d),  # type: ignore[misc]
                )


def _assignments(names: Sequence[str], space: ShapeSpace) -> list[dict[str, int]]:
    """Three assignments in which dims move in different orders, inside the ranges that the file records."""
    result = []
    for turn in range(3):
        sizes = {}
        for index, name in enumerate(names):
            if name in space:
                values = space[name].values()
                # A dim of one is like a constant, and broadcasts.
                values = values[1:] if values[0] == 1 and len(values) > 1 else values
                choices: Sequence[int] = (values[0], values[len(values) // 2], values[-1])
            else:
                choices = _BATCHES if index == 0 else [size + 64 * index for size in _SIZES]
            sizes[name] = choices[_ORDERS[index % len(_ORDERS)][turn]]
        result.append(sizes)
    return result


def _without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy in which large constants are inputs with their type and dims: shapes do not ask for their values."""
    import onnx

    light = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import, functions=model.functions)
    graph = light.graph
    graph.name = model.graph.name or "graph"
    graph.node.extend(model.graph.node)
    graph.input.extend(model.graph.input)
    graph.output.extend(model.graph.output)
    listed = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if _count(tensor.dims) <= _MOST_ELEMENTS and tensor.data_location != onnx.TensorProto.EXTERNAL:
            graph.initializer.append(tensor)
        elif tensor.name not in listed:
            graph.input.append(onnx.helper.make_tensor_value_info(tensor.name, tensor.data_type, list(tensor.dims)))
    return light


def _count(dims: Sequence[int]) -> int:
    count = 1
    for dim in dims:
        count *= dim
    return count


def _input_dims(model: onnx.ModelProto) -> list[str]:
    """The names of the dims of the inputs; a dim without a name gets one, such as `x_dim2`."""
    names: dict[str, None] = {}
    for value in model.graph.input:
        for axis, dim in enumerate(value.type.tensor_type.shape.dim):
            if not dim.HasField("dim_value"):
                if not dim.dim_param:
                    dim.dim_param = axis_name(value.name, axis)
                names[dim.dim_param] = None
    return list(names)


def _with_sizes(model: onnx.ModelProto, sizes: Assignment) -> onnx.ModelProto:
    """The model with integers for the dims of its inputs, and outputs of which nothing is said."""
    import onnx

    sized = onnx.ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not dim.HasField("dim_value"):
                dim.dim_value = sizes[dim.dim_param]
    for value in sized.graph.output:
        value.type.tensor_type.ClearField("shape")
    return sized


def _inferred(model: onnx.ModelProto) -> dict[str, tuple[int, Dims]]:
    """Element type and dims by name, as far as ONNX infers how many dims there are."""
    import onnx

    inferred = model
    # A picture without dims is better than none.
    with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
        inferred = infer_propagated(model)
    graph = inferred.graph
    return {
        value.name: (value.type.tensor_type.elem_type, tuple(_dim(d) for d in value.type.tensor_type.shape.dim))
        for value in (*graph.input, *graph.output, *graph.value_info)
        if value.type.HasField("tensor_type") and value.type.tensor_type.HasField("shape")
    }


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or UNKNOWN
