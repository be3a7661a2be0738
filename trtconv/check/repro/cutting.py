"""Cutting some nodes out of a model as a model of their own: what they read from outside becomes its inputs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import values_read
from trtconv.core.tensors import TensorSpec

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# Integers up to this many elements are sizes, axes and the like; they are written into the cut as constants.
FROZEN_ELEMENTS = 4096


def boundary(model: onnx.ModelProto, chosen: Collection[int]) -> tuple[list[str], list[str]]:
    """(values read from outside of the chosen nodes, values that the rest or the model's outputs read)."""
    nodes = model.graph.node
    constants = {t.name for t in model.graph.initializer}
    picked = set(chosen)
    produced = {out for i in picked for out in nodes[i].output if out}
    inner = dict.fromkeys(
        n for i in sorted(picked) for n in values_read(nodes[i]) if n not in produced and n not in constants
    )
    read_outside = {o.name for o in model.graph.output}
    read_outside |= {n for i, node in enumerate(nodes) if i not in picked for n in values_read(node)}
    outer = [out for i in sorted(picked) for out in nodes[i].output if out in read_outside]
    return list(inner), outer


def cut(
    model: onnx.ModelProto,
    chosen: Collection[int],
    values: Mapping[str, Array],
    dims: Mapping[str, Sequence[int | str]] | None = None,
) -> onnx.ModelProto:
    """A model of the chosen nodes with only the weights that they read.

    `values` gives the type of every value at the boundary, and its shape unless `dims` names it. Small integers at
    the boundary become constants with those values, unless `dims` is given: then their axes may move.
    """
    from onnx import helper, numpy_helper

    inputs, outputs = boundary(model, chosen)
    frozen = [n for n in inputs if _is_size(values[n])] if dims is None else []
    nodes = [model.graph.node[i] for i in sorted(set(chosen))]
    needed = {n for node in nodes for n in values_read(node)} | set(outputs)
    weights = [t for t in model.graph.initializer if t.name in needed]
    graph = helper.make_graph(
        nodes,
        "cut",
        [_value_info(n, values[n], dims) for n in inputs if n not in frozen],
        [_value_info(n, values[n], dims) for n in outputs],
        [*weights, *(numpy_helper.from_array(values[n], n) for n in frozen)],
    )
    model_cut: onnx.ModelProto = helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    model_cut.functions.extend(model.functions)
    return model_cut


def cut_inputs(model: onnx.ModelProto, values: Mapping[str, Array]) -> dict[str, Array]:
    """The values of a cut's inputs."""
    return {v.name: values[v.name] for v in model.graph.input}


def input_specs(model: onnx.ModelProto) -> tuple[TensorSpec, ...]:
    """The inputs of a cut, as a reference file records them."""
    from trtconv.core.model.file import tensor_spec

    return tuple(tensor_spec(v) for v in model.graph.input)


def _is_size(array: Array) -> bool:
    return array.dtype.kind in "iub" and array.size <= FROZEN_ELEMENTS


def _value_info(name: str, array: Array, dims: Mapping[str, Sequence[int | str]] | None) -> onnx.ValueInfoProto:
    from onnx import helper

    shape = list(array.shape) if dims is None else list(dims.get(name, array.shape))
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
