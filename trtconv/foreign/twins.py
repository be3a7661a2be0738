"""Twins of a graph by which its own rounding is measured: in FP64, and with weights moved by a rounding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of, walk_nodes
from trtconv.core.model.file import all_tensors
from trtconv.proof.noise.scales import move_scales
from trtconv.proof.power.fault import copy_of

if TYPE_CHECKING:
    import onnx

# Attributes that name an element type: Cast, EyeLike and window operators, random numbers, softmax of Attention.
TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype")
# Of these operators some inputs are FP32 whatever the data is (ONNX operator schemas).
FP32_INPUTS = {"Resize": (1, 2), "Upsample": (1,)}
# Moved by a rounding, a number that decides a size may decide another one.
SIZING = ("Resize", "Upsample", "Range", "NonMaxSuppression", "TopK", "Reshape", "Tile", "Expand")
# Fewer elements are rather a threshold or a scale than weights.
FEWEST_WEIGHTS = 16


def in_float64(model: onnx.ModelProto) -> onnx.ModelProto | None:
    """The model with every FP32 value in FP64, in place; None where it holds what has no FP64 form."""
    from onnx import TensorProto

    if model.functions or any(n.domain not in ("", "ai.onnx") for n in walk_nodes(model.graph.node)):
        return None
    if any(t.data_type in (TensorProto.FLOAT16, TensorProto.BFLOAT16) for t in all_tensors(model.graph)):
        return None
    _widen(model.graph)
    return model


def _widen(graph: onnx.GraphProto) -> None:
    from onnx import TensorProto, helper

    float_, double = TensorProto.FLOAT, TensorProto.DOUBLE
    for tensor in _tensors(graph):
        if tensor.data_type == float_:
            _replace(tensor, wide=True)
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == float_:
            value.type.tensor_type.elem_type = double
    narrowed: list[onnx.NodeProto] = []
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.name in TYPE_ATTRIBUTES and attribute.i == float_:
                attribute.i = double
        for body in bodies_of(node):
            _widen(body)
        for index in FP32_INPUTS.get(node.op_type, ()):
            if index < len(node.input) and node.input[index]:
                name = f"{node.output[0]}/fp32_{index}"
                narrowed.append(helper.make_node("Cast", [node.input[index]], [name], to=float_))
                node.input[index] = name
        if node.op_type == "ConstantOfShape" and not node.attribute:
            node.attribute.append(helper.make_attribute("value", helper.make_tensor("value", double, [1], [0.0])))
        narrowed.append(node)
    nodes = [copy_of(n) for n in narrowed]
    del graph.node[:]
    graph.node.extend(nodes)


def with_moved_weights(model: onnx.ModelProto, seed: int) -> onnx.ModelProto | None:
    """The model with each FP32 weight moved by at most one unit in its last place, in place; None without weights.

    Scales of quantised operators count as weights: beside a tie they decide a step (see `proof.scales`).
    """
    import numpy as np
    from onnx import TensorProto

    sizing = {i for n in walk_nodes(model.graph.node) if n.op_type in SIZING for i in n.input}
    chance = np.random.default_rng(seed)
    moved = int(move_scales(model, seed, 1.0))
    for tensor in all_tensors(model.graph):
        if tensor.data_type == TensorProto.FLOAT and tensor.name not in sizing:
            moved += _replace(tensor, chance=chance)
    return model if moved else None


def _replace(tensor: onnx.TensorProto, *, wide: bool = False, chance: object = None) -> int:
    """Put the tensor in FP64, or move its values; 1 when it changed."""
    import numpy as np
    from onnx import numpy_helper

    values = numpy_helper.to_array(tensor)
    if wide:
        changed = values.astype(np.float64)
    else:
        if values.size < FEWEST_WEIGHTS:
            return 0
        assert isinstance(chance, np.random.Generator)
        eps = np.finfo(np.float32).eps
        noise = chance.uniform(-eps, eps, values.shape)
        with np.errstate(all="ignore"):
            changed = np.where(np.isfinite(values), values + values * noise, values).astype(np.float32)
    tensor.CopyFrom(numpy_helper.from_array(changed.reshape(values.shape), tensor.name))
    return 1


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    """Initializers and tensor attributes of this graph, without its bodies."""
    yield from graph.initializer
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t
