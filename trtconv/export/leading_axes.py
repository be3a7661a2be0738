"""Axes of reductions counted from the front.

ONNX Runtime leaves an axis that is counted from the back (-1) in the shape of a result without elements: ReduceSum of
(1, 1, 0, 2) over -1 has the shape (1, 1, 0, 2), over 3 it has (1, 1, 0). "No boxes" is such a tensor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import drop_unread, graphs_of, walk_nodes
from trtconv.core.model.inference import infer, without_weights

if TYPE_CHECKING:
    from collections.abc import Iterable

    import onnx


def count_axes_from_front(model: onnx.ModelProto) -> int:
    """Write negative axes of reductions whose rank is known as positive ones, in place; returns at how many nodes.

    ArgMax and ArgMin are such, too.
    """
    import onnx
    from onnx import numpy_helper

    graphs = list(graphs_of(model.graph))
    constants = {t.name: t for graph in graphs for t in graph.initializer}
    held = ((n, a) for g in graphs for n in g.node if n.op_type == "Constant" for a in n.attribute)
    constants |= {n.output[0]: a.t for n, a in held if a.name == "value"}

    def axes_of(node: onnx.NodeProto) -> list[int]:
        if len(node.input) > 1:
            tensor = constants.get(node.input[1])
            small = tensor is not None and tensor.data_location != onnx.TensorProto.EXTERNAL
            return [int(i) for i in numpy_helper.to_array(tensor).reshape(-1)] if tensor is not None and small else []
        written = _axes_attribute(node)
        return [] if written is None else [written.i] if written.name == "axis" else list(written.ints)

    def counts_back(node: onnx.NodeProto) -> bool:
        reduces = node.op_type.startswith("Reduce") or node.op_type in ("ArgMax", "ArgMin")
        return reduces and not node.domain and any(axis < 0 for axis in axes_of(node))

    nodes = [node for node in walk_nodes(model.graph.node) if counts_back(node)]
    if not nodes or any(map(_leaves_the_rank_open, walk_nodes(model.graph.node))):
        return 0
    ranks = _ranks(graphs)
    if any(node.input[0] not in ranks for node in nodes):
        ranks = {**_ranks(graphs_of(infer(without_weights(model)).graph)), **ranks}
    changed, replaced = 0, set()
    for node in nodes:
        rank = ranks.get(node.input[0])
        if rank is None:
            continue
        axes = [axis % rank for axis in axes_of(node)]
        written = _axes_attribute(node)
        if written is None:
            # In the outermost graph, which bodies see: a name stands for one value there and in them.
            tensor = _axes_tensor(axes)
            if all(t.name != tensor.name for t in model.graph.initializer):
                model.graph.initializer.append(tensor)
            replaced.add(node.input[1])
            node.input[1] = tensor.name
        elif written.name == "axis":
            written.i = axes[0]
        else:
            written.ints[:] = axes
        changed += 1
    drop_unread(model.graph, replaced)
    return changed


def _axes_attribute(node: onnx.NodeProto) -> onnx.AttributeProto | None:
    return next((a for a in node.attribute if a.name in ("axes", "axis")), None)


def _leaves_the_rank_open(node: onnx.NodeProto) -> bool:
    """True for a Squeeze of whatever is 1, whose rank the file has for the traced sizes alone."""
    return node.op_type == "Squeeze" and len(node.input) < 2 and not node.attribute


def _axes_tensor(axes: list[int]) -> onnx.TensorProto:
    """The axes as a constant, with the same name for the same axes."""
    import onnx

    name = "trtconv_axes_" + "_".join(map(str, axes))
    return onnx.helper.make_tensor(name, onnx.TensorProto.INT64, [len(axes)], axes)


def _ranks(graphs: Iterable[onnx.GraphProto]) -> dict[str, int]:
    """The ranks of the values whose shapes are written in the graphs, by name."""
    ranks: dict[str, int] = {}
    for graph in graphs:
        for value in (*graph.input, *graph.value_info, *graph.output):
            if value.type.tensor_type.HasField("shape"):
                ranks[value.name] = len(value.type.tensor_type.shape.dim)
        ranks |= {t.name: len(t.dims) for t in graph.initializer}
    return ranks
