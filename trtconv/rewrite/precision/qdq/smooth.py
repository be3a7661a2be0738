"""SmoothQuant: large activations behind a LayerNormalization are evened out, and the weights that read them make up.

y = (x / s) (diag(s) W) for any s over 0. With s_k = max|x_k|^a / max|W_k|^(1 - a), a = 0.5, neither side has outliers
(Xiao et al., "SmoothQuant", 2023, equation 4). 1 / s goes into scale and bias of the norm, so nothing runs for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.precision.qdq.layers import PRODUCTS, Layer

STRENGTH = 0.5
LEAST, MOST = 1e-3, 1e3


@dataclass(frozen=True)
class SmoothSite:
    """An activation after a norm, the inputs of nodes that hold its scale and bias, and the layers that read it.

    `affine` are (node, input index) of constants along the last axis, all of which are divided by s.
    """

    value: str
    norm: Node
    affine: tuple[tuple[Node, int], ...]
    layers: tuple[Layer, ...]


def smooth_sites(graph: Graph, layers: Sequence[Layer]) -> tuple[SmoothSite, ...]:
    """The norms all of whose readers are products to be quantised."""
    by_node = {id(layer.node): layer for layer in layers if layer.node.op in PRODUCTS}
    sites = []
    for value in dict.fromkeys(layer.node.inputs[0] for layer in by_node.values()):
        readers = graph.uses(value)
        affine = _affine(graph, value)
        if affine is None or value in graph.outputs or any(id(r) not in by_node for r in readers):
            continue
        if all(r.inputs[0] == value for r in readers):
            sites.append(SmoothSite(value, affine[0][0], affine, tuple(by_node[id(r)] for r in readers)))
    return tuple(sites)


def _affine(graph: Graph, value: str) -> tuple[tuple[Node, int], ...] | None:
    """Where the scale and bias of a norm stand: inputs of LayerNormalization, or of the Mul and Add that it became."""
    node = graph.maker(value)
    if node is None:
        return None
    if node.key == "LayerNormalization":
        rank = graph.rank(node.inputs[0])
        last = rank is not None and node.attr("axis", -1) in (-1, rank - 1)
        slots = [i for i in (1, 2) if node.input(i)]
        constant = last and all(graph.is_constant(node.inputs[i]) for i in slots)
        return tuple((node, i) for i in slots) if constant else None
    bias = _constant_operand(graph, node) if node.key == "Add" else None
    inner = node
    if bias is not None:
        other = node.inputs[1 - bias]
        scaled = graph.maker(other, "Mul")
        if scaled is None or not graph.used_once(other):
            return None
        inner = scaled
    scale = _constant_operand(graph, inner) if inner.key == "Mul" else None
    if scale is None or not _normalised(graph, inner.inputs[1 - scale]):
        return None
    return ((inner, scale), *(((node, bias),) if bias is not None else ()))


def _normalised(graph: Graph, name: str) -> bool:
    """True for what a norm gives before its scale: a quotient by, or a product with the inverse of, a deviation."""
    node = graph.maker(name, "Div", "Mul")
    return node is not None and any(graph.maker(i, "Sqrt", "Reciprocal") is not None for i in node.inputs)


def _constant_operand(graph: Graph, node: Node) -> int | None:
    """Which input of a binary node is a constant along the last axis."""
    for index in range(2):
        tensor = graph.constant_tensor(node.input(index))
        if tensor is not None and tensor.dims and max(tensor.dims) == tensor.dims[-1] == int(np.prod(tensor.dims)):
            return index
    return None


def smooth(
    model: onnx.ModelProto, graph: Graph, sites: Sequence[SmoothSite], channels: Mapping[str, Array]
) -> tuple[onnx.ModelProto, tuple[SmoothSite, ...]]:
    """A copy of the model with the factors moved, and the sites at which that happened.

    `graph` is the index of `model`; `channels` has the largest magnitude of each activation along its last axis.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    nodes = {node.name or node.output[0]: node for node in copy.graph.node}
    smoothed = []
    for site in sites:
        weights = [_matrix(graph, layer) for layer in site.layers]
        if any(w is None for w in weights):
            continue
        largest = np.max([np.abs(w).max(1) for w in weights if w is not None], 0)
        factor = _factor(channels[site.value], largest)
        for node, index in site.affine:
            _replace(copy, graph, nodes[node.name], index, 1.0 / factor)
        for layer in site.layers:
            along = factor[None, :] if _transposed(layer) else factor[:, None]
            _replace(copy, graph, nodes[layer.node.name], 1, along)
        smoothed.append(site)
    return copy, tuple(smoothed)


def _factor(activation: Array, weight: Array) -> Array:
    moved = np.maximum(activation, 1e-5) ** STRENGTH / np.maximum(weight, 1e-5) ** (1 - STRENGTH)
    # Only the shape of s matters; around 1 the scale and bias keep their magnitude.
    factor: Array = np.clip(moved / np.exp(np.log(moved).mean()), LEAST, MOST).astype(np.float32)
    return factor


def _transposed(layer: Layer) -> bool:
    return layer.node.op == "Gemm" and bool(layer.node.attr("transB", 0))


def _matrix(graph: Graph, layer: Layer) -> Array | None:
    """The weight as [K, N]."""
    tensor = graph.constant_tensor(layer.node.inputs[1])
    if tensor is None or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return None
    matrix: Array = numpy_helper.to_array(tensor)
    return matrix.T if _transposed(layer) else matrix


def _replace(model: onnx.ModelProto, graph: Graph, node: onnx.NodeProto, index: int, factor: Array) -> None:
    """Give an input of a node a constant of its own: others may read the one that it had."""
    tensor = graph.constant_tensor(node.input[index])
    assert tensor is not None
    name = f"{node.input[index]}_smooth_{node.name or node.output[0]}_{index}"
    values = (numpy_helper.to_array(tensor) * factor).astype(np.float32)
    model.graph.initializer.append(numpy_helper.from_array(values, name))
    node.input[index] = name
