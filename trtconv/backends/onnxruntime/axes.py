"""The axes that a reduction names, which are an attribute in older opsets and an input in newer ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

INT64 = 7


def whole_constants(graph: onnx.GraphProto) -> dict[str, tuple[int, ...]]:
    """Whole numbers of a graph that nodes may have as axes, by name."""
    from onnx import numpy_helper

    tensors = {t.name: t for t in graph.initializer}
    constants: dict[str, tuple[int, ...]] = {}
    for node in graph.node:
        if node.op_type == "Constant" and node.attribute:
            tensors[node.output[0]] = node.attribute[0].t
            constants[node.output[0]] = tuple(node.attribute[0].ints)
    for name, tensor in tensors.items():
        if tensor.data_type == INT64 and len(tensor.dims) < 2:
            constants[name] = tuple(numpy_helper.to_array(tensor).reshape(-1).tolist())
    return constants


def written_axes(node: onnx.NodeProto, constants: Mapping[str, tuple[int, ...]]) -> tuple[int, ...] | None:
    """The axes as they are written; empty where none are, and None where an input has them that is no such constant."""
    if len(node.input) > 1 and node.input[1]:
        return constants.get(node.input[1]) or None
    return next((tuple(a.ints) for a in node.attribute if a.name == "axes"), ())
