"""What the values of a run tell about a target: places written twice, and integers that 32 bits, or FP32, do not hold.

ONNX Runtime writes in order and computes int64, so a comparison of graphs on a CPU sees neither.
"""

from __future__ import annotations

import math
from collections.abc import Container, Mapping, Sequence

import numpy as np
import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import Target
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import SamplePoint, sample_inputs, sample_points
from trtconv.proof.sizes import elements
from trtconv.rewrite.engine.rounds import describe
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import INT64, INTEGERS

SCATTERS = ("ScatterElements", "ScatterND")
# These compute integers that may be larger than what they are made of; others move or compare.
GROWING = ("Add", "Sub", "Mul", "Pow", "Cast", "CumSum", "ReduceSum", "ReduceProd", "Neg", "BitShift", "MatMul", "Sum")
INT32 = (-(1 << 31), (1 << 31) - 1)
# TensorRT 8.6.0 computes these of integers in FP32: from 2**24 on other numbers come out (measured on an H200, with
# int32 around 2**24 and up to 2**31; sums, products, Max, Min, comparisons and CumSum were exact).
FLOATING = ("ReduceMax", "ReduceMin", "ReduceSum", "ReduceProd", "ReduceMean", "ReduceSumSquare", "ReduceL1", "TopK",
            "ArgMax", "ArgMin")  # fmt: skip
MOST_ELEMENTS = 1 << 22
MOST_POINTS = 4


def observe(
    model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], target: Target
) -> tuple[str, ...]:
    """Notes on scatters that write different values to one place, at small points and at the highest values.

    Raises UnsupportedError for TensorRT 8.6 when an integer of the graph does not fit into 32 bits at such a point, or
    not into FP32 where that is what it is reduced in.
    """
    # Most models have neither, and an index of a large graph takes a quarter of the time of all of its rules.
    if target.generation != 8 and not any(n.op_type in SCATTERS for n in model.graph.node):
        return ()
    graph = index_model(model, target)
    scatters = [n for n in graph.find(*SCATTERS) if n.attr("reduction", "none") == "none"]
    data = _data(graph) if target.generation == 8 else set()
    integers, floating = _growing(graph, data), _floating(graph, data)
    observed_values = [v for n in scatters for v in n.inputs[:3] if v] + [*integers, *floating]
    runner = _runner(model, graph, observed_values) if observed_values else None
    if runner is None:
        return ()
    note_by_node: dict[str, str] = {}
    for point in _points(space, specs):
        feed = sample_inputs(specs, point)
        try:
            values = {**_constants(graph, observed_values), **feed, **runner(feed)}
        except TrtconvError:
            continue
        _require_32_bits(integers, values, point, target)
        _require_float32(floating, values, point, target)
        for node in scatters:
            if node.name not in note_by_node and _writes_twice(node, values):
                note_by_node[node.name] = (
                    f"{describe(node)} writes different values to one place at {point}: a GPU may keep any of them, "
                    "so keep indices apart, or use scatter_reduce, or index_put_ with accumulate=True"
                )
    return tuple(note_by_node.values())


def _data(graph: Graph) -> set[str]:
    """The inputs, and the values that are computed from the data of inputs, not from shapes."""
    data = set(graph.inputs)
    for node in graph.nodes.values():
        if node.op not in ("Shape", "Size") and any(i in data for i in node.inputs):
            data.update(node.outputs)
    return data


def _growing(graph: Graph, data: Container[str]) -> dict[str, Node]:
    """The int64 values that may be larger than the data that they are computed from, by the nodes that make them."""
    return {
        node.outputs[0]: node
        for node in graph.find(*GROWING)
        if graph.dtype(node.outputs[0]) == INT64 and any(i in data for i in node.inputs)
    }


def _floating(graph: Graph, data: Container[str]) -> dict[str, Node]:
    """The integers that a target computes with in FP32, by the nodes that do: what goes in, and what comes out."""
    nodes = [n for n in graph.find(*FLOATING) if n.inputs[0] in data and graph.dtype(n.inputs[0]) in INTEGERS]
    return {name: node for node in nodes for name in (node.inputs[0], node.outputs[0])}


def _runner(model: onnx.ModelProto, graph: Graph, value_names: Sequence[str]) -> OnnxRuntimeRunner | None:
    """The model with these values as outputs besides; None when it cannot be run."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    node_outputs = {o for n in graph.nodes.values() for o in n.outputs}
    output_names = {o.name for o in copy.graph.output}
    copy.graph.output.extend(
        onnx.ValueInfoProto(name=v) for v in dict.fromkeys(value_names) if v in node_outputs - output_names
    )
    try:
        return OnnxRuntimeRunner(copy.SerializeToString(), threads=1, exact=False)
    except (TrtconvError, ValueError):
        return None


def _constants(graph: Graph, value_names: Sequence[str]) -> dict[str, Array]:
    constants = {name: graph.constant(name) for name in value_names}
    return {name: value for name, value in constants.items() if value is not None}


def _points(space: ShapeSpace, specs: tuple[TensorSpec, ...]) -> list[SamplePoint]:
    """Small ones with random values, and the highest values that inputs have."""

    points = sample_points(space, specs)
    small = sorted((p for p in points if p.values == "random"), key=lambda p: elements(specs, p))[: MOST_POINTS - 1]
    full = [p for p in points if p.values == "full" and elements(specs, p) <= MOST_ELEMENTS]
    return [*small, *full]


def _require_32_bits(
    integers: Mapping[str, Node], values: Mapping[str, Array], point: SamplePoint, target: Target
) -> None:
    for name, node in integers.items():
        value = values.get(name)
        if value is None or not value.size:
            continue
        low, high = int(value.min()), int(value.max())
        if low < INT32[0] or high > INT32[1]:
            worst = low if low < INT32[0] else high
            raise UnsupportedError(
                f"{describe(node)}: {target} computes int64 in 32 bits, silently, and {worst} comes out of it at "
                f"{point}",
                hint="keep the numbers below 2**31 (take the remainder earlier, hash in smaller steps), or give the "
                "input the value range that it has",
                where=node.origin.source or None,
            )


def _require_float32(
    floating: Mapping[str, Node], values: Mapping[str, Array], point: SamplePoint, target: Target
) -> None:
    for name, node in floating.items():
        # The ends of 32 bits stand for no number; FP32 has the one, and the other comes back by saturation.
        value = np.clip(values.get(name, np.empty(0, np.int64)).astype(np.int64), *INT32)
        inexact = value[(value.astype(np.float32).astype(np.int64) != value) & (value != INT32[1])]
        if inexact.size:
            raise UnsupportedError(
                f"{describe(node)}: {target} computes it in FP32, silently, and {inexact.flat[0]} at {point} is no "
                "number of FP32",
                hint="keep the numbers below 2**24 (take the remainder earlier, or work on a high and a low part)",
                where=node.origin.source or None,
            )


def _writes_twice(node: Node, values: Mapping[str, Array]) -> bool:
    if any(v not in values for v in node.inputs[:3]):
        return False
    data, indices, updates = (values[v] for v in node.inputs[:3])
    if updates.size > MOST_ELEMENTS or not indices.size:
        return False
    if node.op == "ScatterND":
        depth = indices.shape[-1]
        at = indices.reshape(-1, depth) % np.array(data.shape[:depth])
        places = np.asarray(at @ np.array([math.prod(data.shape[i + 1 : depth]) for i in range(depth)], dtype=np.int64))
        written = updates.reshape(places.size, -1)
    else:
        axis = node.attr("axis", 0) % data.ndim
        grid = np.indices(indices.shape)
        grid[axis] = indices % data.shape[axis]
        places = np.asarray(np.ravel_multi_index(tuple(grid.reshape(data.ndim, -1)), data.shape))
        written = updates.reshape(places.size, 1)
    order = np.argsort(places, kind="stable")
    again = np.flatnonzero(places[order][1:] == places[order][:-1])
    first, second = written[order[again]], written[order[again + 1]]
    return bool(np.any((first != second) & ~((first != first) & (second != second))))
