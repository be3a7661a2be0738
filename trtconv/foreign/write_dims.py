"""Writing the dims that were settled into a file, and dropping what it says about sizes and is not so."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.core.tensors import TensorSpec
from trtconv.foreign.interface import fixed_value
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import onnx


def write_dims(
    model: onnx.ModelProto, inputs: Sequence[TensorSpec], samples: Sequence[ReferenceSample]
) -> tuple[str, ...]:
    """Write the dims of the inputs into the model, in place, and correct the outputs'; returns what was dropped.

    Sizes of inner values are dropped unsaid: shape inference gives them anew, and what an exporter wrote there for
    one size (a batch of 1) would stand in a dynamic graph's way.
    """
    by_name = {s.name: s for s in inputs}
    for value in model.graph.input:
        if value.name in by_name:
            shape = value.type.tensor_type.shape
            del shape.dim[:]
            for dim in by_name[value.name].dims:
                if isinstance(dim, int):
                    shape.dim.add(dim_value=dim)
                else:
                    shape.dim.add(dim_param=dim)
    for value in model.graph.value_info:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    wrong = [text for value in model.graph.output for text in _correct(value, samples)]
    if not wrong:
        return ()
    return (f"sizes that the file states of its outputs and that are others: {', '.join(wrong)}; they were dropped",)


def fix_inputs(model: onnx.ModelProto, fixed: Sequence[TensorSpec]) -> None:
    """Make constants of the inputs that the user fixed and of those with a default, in place."""
    from onnx import numpy_helper

    # An input with a default (older files list every weight as one) is not an input of an engine either.
    names = {s.name for s in fixed} | {t.name for t in model.graph.initializer}
    inputs = [v for v in model.graph.input if v.name not in names]
    del model.graph.input[:]
    model.graph.input.extend(inputs)
    model.graph.initializer.extend(numpy_helper.from_array(fixed_value(s), s.name) for s in fixed)


def _correct(value: onnx.ValueInfoProto, samples: Sequence[ReferenceSample]) -> list[str]:
    """Drop the dims of an output that some run contradicts."""
    kind = value.type.tensor_type
    shapes = [(s.point.sizes, s.outputs[value.name].shape) for s in samples if value.name in s.outputs]
    if not value.type.HasField("tensor_type") or not kind.HasField("shape"):
        return []
    if any(len(shape) != len(kind.shape.dim) for _, shape in shapes):
        kind.ClearField("shape")
        return [f"the rank of '{value.name}'"]
    wrong = []
    for axis, dim in enumerate(kind.shape.dim):
        stated = dim.dim_value if dim.HasField("dim_value") else dim.dim_param
        if isinstance(stated, int) and stated < 1:
            dim.Clear()
            continue
        if any(stated != "" and sizes.get(str(stated), stated) != shape[axis] for sizes, shape in shapes):
            named = isinstance(stated, str)
            promised = named and any(stated in sizes for sizes, _ in shapes)
            dim.Clear()
            # A name that no input has promises nothing.
            wrong += [f"axis {axis} of '{value.name}' ({stated})"] if promised or not named else []
    return wrong
