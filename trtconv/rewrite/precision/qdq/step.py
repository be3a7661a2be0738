"""The last step of a rewrite to INT8 or FP8: calibrate with the user's data, put the pairs in, say what was done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import onnx

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.data.samples import batches
from trtconv.core.data.source import DataSource, read_data
from trtconv.core.data.split import Parts, split
from trtconv.core.errors import InvalidRequestError
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Skipped
from trtconv.core.model.file import load_weights, set_metadata, signature
from trtconv.core.model.provenance import PRECISION_KEY
from trtconv.core.precision import FP32, precision_named
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.rewrite.engine.rounds import node_text
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.precision.qdq.apply import QuantisedGraph, QuantisePlan, quantise
from trtconv.rewrite.precision.qdq.layers import Layer
from trtconv.rewrite.precision.qdq.thresholds import require_method

RULE = "quantise"
WHY = "TensorRT computes a layer in {} when its inputs come through Q/DQ pairs with scales from real data."


@dataclass(frozen=True)
class QuantisedStep:
    """The quantised model with what the ledger says of it; `parts` is the data, of which one part calibrated."""

    model: onnx.ModelProto
    entries: tuple[LedgerEntry, ...]
    skipped: tuple[Skipped, ...]
    notes: tuple[str, ...]
    parts: Parts


def require_data(request: RewriteRequest) -> None:
    """Raise InvalidRequestError where INT8 or FP8 is asked for without data, or data is no use."""
    if not request.quantised:
        if request.rest != RewriteRequest.rest:
            raise InvalidRequestError(
                f"--rest {request.rest} says what int8 and fp8 leave alone, and the precision is {request.precision}",
                hint=f"write --precision {request.rest}",
            )
        return
    if not request.data:
        raise InvalidRequestError(
            f"--precision {request.precision} needs data: scales from random inputs would fit no real one",
            hint="name inputs as the network meets them: --data FOLDER, FILE.npz or FILE.py:function",
        )
    require_method(request.calibration, precision_named(request.precision))
    DataSource(request.data, request.preprocess).require_readable()


def plan_of(request: RewriteRequest, keep_fp32: tuple[str, ...] = ()) -> QuantisePlan:
    """The plan that a request asks for."""
    return QuantisePlan(
        precision_named(request.precision),
        request.calibration,
        request.quantise_only,
        request.rest,
        (*request.keep_fp32, *keep_fp32) if request.rest != FP32.name else (),
    )


def quantise_step(
    model: onnx.ModelProto, request: RewriteRequest, progress: Progress, keep_fp32: tuple[str, ...] = ()
) -> QuantisedStep:
    """Quantise an FP32 model as the request says; raises as `quantise`, `read_data` and `split` do."""
    load_weights(model, request.model.parent)
    described = signature(model)
    progress.phase("reading data")
    parts = split(read_data(DataSource(request.data, request.preprocess), described.inputs))
    runs = tuple(batches(parts.calibration, described.inputs, described.space))
    quantised = quantise(model, plan_of(request, keep_fp32), runs, request.target, progress)
    set_metadata(quantised.model, PRECISION_KEY, request.precision)
    ratio = signal_to_noise(model, quantised.model, runs[0].inputs)
    entries, skipped = ledger_of(model, quantised, request.precision, request.calibration, ratio)
    return QuantisedStep(quantised.model, entries, skipped, _notes(quantised, request, parts, ratio), parts)


def signal_to_noise(
    before: onnx.ModelProto, after: onnx.ModelProto, inputs: Mapping[str, Array]
) -> Mapping[str, float]:
    """10 log10(mean(y^2) / mean((y - y')^2)) in dB, by output."""
    first, second = (emulated_runner(m)(inputs) for m in (before, after))
    return {name: decibels(first[name], second[name]) for name in first if first[name].dtype.kind == "f"}


def decibels(expected: Array, actual: Array) -> float:
    """Signal over noise in dB, 200 where nothing differs, -200 where the result is not finite."""
    signal = expected.astype(np.float64)
    noise = float(np.mean((signal - actual.astype(np.float64)) ** 2))
    if not np.isfinite(noise):
        return -200.0
    ratio = max(float(np.mean(signal**2)), 1e-300) / max(noise, 1e-300)
    return float(np.clip(10 * np.log10(ratio), -200.0, 200.0))


def ledger_of(
    before: onnx.ModelProto, quantised: QuantisedGraph, precision: str, method: str, ratio: Mapping[str, float]
) -> tuple[tuple[LedgerEntry, ...], tuple[Skipped, ...]]:
    """One entry for each layer, and one reason for each that was left alone."""
    nodes = {n.name or n.output[0]: n for n in before.graph.node}
    after = {n.name: n for n in quantised.model.graph.node}
    ratios = ", ".join(f"'{name}' {value:.1f} dB" for name, value in ratio.items())
    proof = Proof(None, "onnxruntime", note=f"not equal by intent: signal over quantisation noise is {ratios}")
    entries = tuple(
        LedgerEntry(
            RULE,
            WHY.format(precision),
            layer.node.name,
            layer.node.origin,
            "",
            (node_text(nodes[layer.node.name]),) if layer.node.name in nodes else (),
            _around(after, layer),
            proof,
            _scales(quantised, layer, precision, method),
        )
        for layer in quantised.placement.layers
    )
    skipped = tuple(Skipped(RULE, x.node, x.reason, x.origin) for x in quantised.skipped)
    return entries, skipped


def _around(nodes: Mapping[str, onnx.NodeProto], layer: Layer) -> tuple[NodeText, ...]:
    """The layer with the pairs that it reads."""
    node = nodes[layer.node.name]
    makers = {o: n for n in nodes.values() for o in n.output}
    texts = []
    for name in node.input[:2]:
        dequantize = makers.get(name)
        quantize = makers.get(dequantize.input[0]) if dequantize is not None else None
        texts += [node_text(n) for n in (quantize, dequantize) if n is not None]
    return (*texts, node_text(node))


def _scales(quantised: QuantisedGraph, layer: Layer, precision: str, method: str) -> str:
    scale = quantised.scales[layer.node.inputs[0]]
    smoothed = " after SmoothQuant" if layer.node.inputs[0] in quantised.smoothed else ""
    each = "per output channel" if layer.axis is not None else "one scale"
    return f"{precision}, {method}: input scale {scale:.6g}{smoothed}, weights {each}, K={layer.k}, N={layer.n}"


def _notes(
    quantised: QuantisedGraph, request: RewriteRequest, parts: Parts, ratio: Mapping[str, float]
) -> tuple[str, ...]:
    name = request.precision
    count, total = len(quantised.layers), len(quantised.layers) + len(quantised.skipped)
    ratios = ", ".join(f"{output} {value:.1f} dB" for output, value in ratio.items())
    notes = [
        f"{name}: {count} of {total} layers, calibrated by {request.calibration} on {len(parts.calibration)} samples",
        f"{name}: signal over quantisation noise: {ratios}",
    ]
    if parts.duplicates:
        notes.append(f"{name}: {parts.duplicates} samples are copies of others and were left out")
    if quantised.smoothed:
        notes.append(f"{name}: SmoothQuant at {len(quantised.smoothed)} norms")
    notes += [f"{name}: '{value}' was zero in every calibration sample" for value in quantised.never]
    reasons: dict[str, int] = {}
    for item in quantised.skipped:
        reasons[item.reason] = reasons.get(item.reason, 0) + 1
    notes += [f"{name}: {count} layers stay in {request.rest}: {reason}" for reason, count in reasons.items()]
    return tuple(notes)
