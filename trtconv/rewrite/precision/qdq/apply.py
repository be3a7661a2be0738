"""`quantise`: an FP32 graph with Q/DQ pairs from calibration data, and what the ledger says of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from trtconv.core.data.samples import Batch
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.model.bodies import drop_unread
from trtconv.core.model.opset import opset_of
from trtconv.core.precision import FP32, HALF_NAMES, INT8, Precision
from trtconv.core.progress import Progress
from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Array, Graph
from trtconv.rewrite.lowering.inline import inline_functions
from trtconv.rewrite.precision.convert import convert_precision
from trtconv.rewrite.precision.opset import OPSET, raise_opset, require_raisable
from trtconv.rewrite.precision.qdq.layers import CONVOLUTIONS
from trtconv.rewrite.precision.qdq.placement import QdqPlacement, Site, SkippedLayer, place_pairs
from trtconv.rewrite.precision.qdq.ranges import collect_ranges
from trtconv.rewrite.precision.qdq.rest import RestPlan, record_rest, require_rest, rest_is_a_flag
from trtconv.rewrite.precision.qdq.smooth import smooth, smooth_sites
from trtconv.rewrite.precision.qdq.thresholds import require_method, threshold
from trtconv.rewrite.precision.quantize import NEWER_TYPES_OPSET, PER_AXIS_OPSET, Pair, Quantization, insert_pairs

# The smallest scales: FP16 holds 2^-20 with four bits, and Q and DQ read the same rounded scale.
LEAST_SCALE, LEAST_HALF_SCALE = 2.0**-100, 2.0**-20


@dataclass(frozen=True)
class QuantisePlan:
    """What to quantise and how. `only` names layers (None takes all), `rest` is the precision of everything else,
    of which `keep_fp32` stay FP32; `smooth` evens out activations behind norms first."""

    precision: Precision
    method: str = "max"
    only: tuple[str, ...] | None = None
    rest: str = FP32.name
    keep_fp32: tuple[str, ...] = ()
    smooth: bool = True


@dataclass(frozen=True)
class QuantisedGraph:
    """The graph with its layers, the scale of every activation, those that SmoothQuant evened out, and those that were
    zero on all of the data (`never`)."""

    model: onnx.ModelProto
    placement: QdqPlacement
    scales: Mapping[str, float]
    smoothed: tuple[str, ...]
    never: tuple[str, ...]

    @property
    def layers(self) -> tuple[str, ...]:
        """The names of the quantised layers, in order of the graph."""
        return tuple(layer.node.name for layer in self.placement.layers)

    @property
    def skipped(self) -> tuple[SkippedLayer, ...]:
        """The layers that stay as they are."""
        return self.placement.skipped


def prepared(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy without local functions in which every node has a name of its own."""
    source, _ = inline_functions(model)
    copy = onnx.ModelProto()
    copy.CopyFrom(source)
    used: set[str] = set()
    for node in copy.graph.node:
        name = node.name or next((o for o in node.output if o), node.op_type)
        while name in used:
            name += "_again"
        node.name = name
        used.add(name)
    return copy


@dataclass(frozen=True)
class Calibrated:
    """An FP32 model made ready: its norms evened out, and the largest magnitude to cover of every activation."""

    model: onnx.ModelProto
    graph: Graph
    precision: Precision
    target: Target
    limits: Mapping[str, float]
    smoothed: tuple[str, ...]


def calibrate(
    model: onnx.ModelProto,
    precision: Precision,
    runs: Sequence[Batch],
    target: Target,
    progress: Progress,
    *,
    method: str = "max",
    smooth: bool = True,
) -> Calibrated:
    """Look at all layers that could be quantised, over `runs`; the model is not changed.

    Raises UnsupportedError where the target lacks the precision or the graph has no layer for it, InvalidRequestError
    for a calibration method that the precision has not.
    """
    require_method(method, precision)
    if not precision.is_in(target):
        raise UnsupportedError(f"{target} has no {precision.name}", hint="choose another precision or target")
    source = prepared(model)
    graph = index_model(source, target)
    placement = place_pairs(graph, precision)
    if not placement.layers:
        raise nothing_to_quantise(placement, precision)
    smoothed: tuple[str, ...] = ()
    if smooth and precision is INT8:
        source, smoothed = _smoothed(source, graph, placement, runs, progress)
        graph = index_model(source, target)
    histograms = collect_ranges(source, placement.watched, runs, progress).histograms
    limits = {name: threshold(h, method, precision) for name, h in histograms.items()}
    return Calibrated(source, graph, precision, target, limits, smoothed)


def quantise(
    model: onnx.ModelProto, plan: QuantisePlan, runs: Sequence[Batch], target: Target, progress: Progress
) -> QuantisedGraph:
    """Calibrate an FP32 model on `runs` and put Q/DQ pairs around the layers of the plan; the model is not changed.

    Weights keep their type and get both nodes, per output channel; biases get none. Raises as `calibrate` does.
    """
    calibrated = calibrate(model, plan.precision, runs, target, progress, method=plan.method, smooth=plan.smooth)
    return insert(calibrated, plan)


def insert(calibrated: Calibrated, plan: QuantisePlan) -> QuantisedGraph:
    """Put the pairs of a plan into a calibrated model. Raises UnsupportedError where the plan names no layer of it."""
    graph = calibrated.graph
    placement = place_pairs(graph, plan.precision, plan.only)
    if not placement.layers:
        raise nothing_to_quantise(placement, plan.precision)
    scales, never = _scales(calibrated.limits, placement, plan)
    typed = _typed(calibrated.model, graph, plan, calibrated.target)
    pairs = _pairs(typed, graph, placement, plan, scales)
    quantised = insert_pairs(typed, pairs, calibrated.target).model
    # Weights that were evened out are stored anew; the old ones go.
    drop_unread(quantised.graph, [t.name for t in quantised.graph.initializer])
    _write_kernel_shapes(quantised, placement)
    if rest_is_a_flag(calibrated.target):
        layers = {layer.node.name: layer.node.op for layer in placement.layers}
        record_rest(quantised, graph, calibrated.model, RestPlan(plan.rest, plan.keep_fp32, layers))
    return QuantisedGraph(quantised, placement, scales, calibrated.smoothed, never)


def nothing_to_quantise(placement: QdqPlacement, precision: Precision) -> UnsupportedError:
    """The error for a graph without a layer that could be quantised."""
    return UnsupportedError(
        f"no layer of the model can be computed in {precision.name}",
        hint="fp16 needs no data: --precision fp16",
        details=[f"{x.op} '{x.node}': {x.reason}" for x in placement.skipped[:5]],
    )


def _smoothed(
    source: onnx.ModelProto, graph: Graph, placement: QdqPlacement, runs: Sequence[Batch], progress: Progress
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    sites = smooth_sites(graph, placement.layers)
    if not sites:
        return source, ()
    values = [site.value for site in sites]
    channels = collect_ranges(source, (), runs, progress, channels=values, phase="evening out").channels
    result, smoothed = smooth(source, graph, sites, channels)
    return result, tuple(site.value for site in smoothed)


def _scales(
    limits: Mapping[str, float], placement: QdqPlacement, plan: QuantisePlan
) -> tuple[dict[str, float], tuple[str, ...]]:
    """The scale of each activation, one for those that share; and the activations that were always zero."""
    shared: dict[str, float] = {}
    for name, first in placement.share.items():
        shared[first] = max(shared.get(first, 0.0), limits[name])
    never = tuple(name for name, first in placement.share.items() if shared[first] == 0.0)
    largest = plan.precision.largest
    return {name: _scale(shared[first] or 1.0, largest, plan) for name, first in placement.share.items()}, never


def _scale(limit: float, largest: float, plan: QuantisePlan) -> float:
    return max(limit / largest, LEAST_HALF_SCALE if plan.rest in HALF_NAMES else LEAST_SCALE)


def _typed(source: onnx.ModelProto, graph: Graph, plan: QuantisePlan, target: Target) -> onnx.ModelProto:
    """The model in the types of what is not quantised, in an opset that can say its pairs."""
    require_rest(plan.rest, target)
    half = plan.rest in HALF_NAMES and not rest_is_a_flag(target)
    model = convert_precision(source, plan.rest, keep_nodes=plan.keep_fp32).model if half else source
    needed = NEWER_TYPES_OPSET if half or plan.precision is not INT8 else PER_AXIS_OPSET
    if opset_of(model) >= needed:
        return model
    require_raisable(graph)
    raised = onnx.ModelProto()
    raised.CopyFrom(model)
    if target.max_opset < OPSET:
        raise UnsupportedError(f"{target} reads opset {target.max_opset}", hint=f"export with opset {needed}")
    raise_opset(raised)
    return raised


def _pairs(
    typed: onnx.ModelProto, graph: Graph, placement: QdqPlacement, plan: QuantisePlan, scales: Mapping[str, float]
) -> list[Pair]:
    """Readers of one value in one scale share a pair. Names are those of the typed graph, which may have casts."""
    nodes = {node.name: node for node in typed.graph.node}
    readers: dict[tuple[str, Quantization], set[tuple[str, int]]] = {}
    for site in placement.sites:
        value = nodes[site.node].input[site.index]
        quantization = (
            _weight(graph, site, plan) if site.weight else Quantization((scales[site.value],), precision=plan.precision)
        )
        readers.setdefault((value, quantization), set()).add((site.node, site.index))
    return [Pair(value, q, frozenset(who), stored=False) for (value, q), who in readers.items()]


def _weight(graph: Graph, site: Site, plan: QuantisePlan) -> Quantization:
    """Symmetric, by the largest magnitude of each output channel."""
    values = weight_values(graph, site.value)
    others = tuple(a for a in range(values.ndim) if a != site.axis)
    largest = np.abs(values).max(axis=others if site.axis is not None else None).reshape(-1)
    scale = tuple(_scale(float(v) or 1.0, plan.precision.largest, plan) for v in largest)
    return Quantization(scale, axis=site.axis, precision=plan.precision)


def weight_values(graph: Graph, name: str) -> Array:
    """The values of a weight. Raises InvalidRequestError when they are still on disk."""
    tensor = graph.constant_tensor(name)
    if tensor is None or tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InvalidRequestError(
            f"the values of weight '{name}' are on disk, and its scales need them", hint="load the model with weights"
        )
    values: Array = numpy_helper.to_array(tensor)
    return values


def _write_kernel_shapes(model: onnx.ModelProto, placement: QdqPlacement) -> None:
    """A weight behind a pair has no size that TensorRT 8.6 would read: its parser refuses a Conv that does not say."""
    layers = {layer.node.name: layer for layer in placement.layers if layer.node.op in CONVOLUTIONS}
    dims = {t.name: list(t.dims) for t in model.graph.initializer}
    makers = {output: node for node in model.graph.node for output in node.output}
    for node in model.graph.node:
        if node.name in layers and not any(a.name == "kernel_shape" for a in node.attribute):
            weight = node.input[1]
            while weight not in dims:
                weight = makers[weight].input[0]
            node.attribute.append(onnx.helper.make_attribute("kernel_shape", dims[weight][2:]))
