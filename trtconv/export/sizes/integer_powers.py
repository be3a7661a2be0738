"""Powers of whole numbers as products: ONNX Runtime computes `Pow` of int64 in floats, another number beyond 2^53.

In torch and in Python `n ** 12 % 9973` is exact, or wraps around as a product does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import drop_unread, graphs_of, replace_nodes, values_read_in
from trtconv.core.model.inference import inferred_types

if TYPE_CHECKING:
    import onnx

MOST = 64


def write_powers_as_products(model: onnx.ModelProto) -> int:
    """Make each Pow of whole numbers by a constant from 2 to 64 products of them; returns how many."""
    exponents = {name: e for graph in graphs_of(model.graph) for name, e in _exponents(graph).items()}
    if not exponents:
        return 0
    import onnx

    whole = (onnx.TensorProto.INT64, onnx.TensorProto.INT32)
    types, changed = inferred_types(model), 0
    read_before = values_read_in(model.graph)
    for graph in graphs_of(model.graph):
        nodes: list[onnx.NodeProto] = []
        for node in graph.node:
            exponent = exponents.get(node.output[0], 0) if node.op_type == "Pow" else 0
            is_whole = bool(exponent) and types.get(node.input[0]) in whole
            nodes += _products(node, exponent) if is_whole else [node]
            changed += is_whole
        replace_nodes(graph, nodes)
    drop_unread(model.graph, read_before)
    return changed


def _exponents(graph: onnx.GraphProto) -> Mapping[str, int]:
    """The exponents of those Pows of a graph that have a scalar of a whole type for one, by what the Pow makes."""
    from onnx import numpy_helper

    tensors = {t.name: t for t in graph.initializer}
    tensors |= {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant" and n.attribute}
    exponents = {}
    for node in graph.node:
        tensor = tensors.get(node.input[1]) if node.op_type == "Pow" else None
        if tensor is not None and not tensor.dims:
            value = numpy_helper.to_array(tensor)
            if value.dtype.kind in "iu" and 2 <= int(value) <= MOST:
                exponents[node.output[0]] = int(value)
    return exponents


def _products(node: onnx.NodeProto, exponent: int) -> list[onnx.NodeProto]:
    """The nodes of `x ** exponent`, by squares; the last one makes what the Pow made."""
    import onnx

    nodes: list[onnx.NodeProto] = []

    def product(a: str, b: str) -> str:
        name = f"{node.output[0]}/product_{len(nodes)}"
        nodes.append(onnx.helper.make_node("Mul", [a, b], [name], name=f"{node.name}/product_{len(nodes)}"))
        nodes[-1].metadata_props.extend(node.metadata_props)
        return name

    square, result = node.input[0], ""
    while exponent:
        if exponent & 1:
            result = product(result, square) if result else square
        exponent >>= 1
        square = product(square, square) if exponent else square
    nodes[-1].output[0] = node.output[0]
    nodes[-1].name = node.name
    return nodes
