"""Measuring what budgets and baselines judge, for a subject and the files beside it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.check.blame.origins import graph_of
from trtconv.check.compare.reference_fit import find_reference, within_profiles
from trtconv.check.compare.subjects import is_engine
from trtconv.check.gate.bench import chosen_samples
from trtconv.check.gate.measured import LATENCY, Measurement, measurement
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import origin_of
from trtconv.core.precision import TYPED
from trtconv.core.progress import Progress
from trtconv.core.requests import CheckRequest

# Seven medians: three may be disturbed, and their median and its spread still hold.
REPEATS = 7
SECONDS_PER_RUN = 0.1
# The first of the repeats has warmed the GPU up; a new context needs a few runs only.
WARM_UP_BETWEEN = 0.05
# Kinds of layers that move data from one type or layout to another and compute nothing.
MOVES = ("Reformat", "NoOp")


@dataclass(frozen=True)
class GateMeasurements:
    """The measurements by name, and why the others could not be made."""

    values: Mapping[str, Measurement] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)


def measure_subject(request: CheckRequest, names: Iterable[str], progress: Progress) -> GateMeasurements:
    """Measure the named quantities (see `Budgets.limits`); for one that cannot be measured here, record why."""
    values: dict[str, Measurement] = {}
    missing: dict[str, str] = {}
    quantities = list(dict.fromkeys(names))
    points = [n[len(LATENCY) :] for n in quantities if n.startswith(LATENCY)]
    for name in quantities:
        if name.startswith(LATENCY):
            continue
        progress.phase(f"measuring {name}")
        try:
            values[name] = _MEASURES[name](request)
        except TrtconvError as error:
            missing[name] = error.message
    for point in points:
        progress.phase(f"latency at {point}")
        try:
            values[LATENCY + point] = measurement(latency_runs(request, point))
        except TrtconvError as error:
            missing[LATENCY + point] = error.message
    return GateMeasurements(values, missing)


def latency_runs(request: CheckRequest, point: str, repeats: int = REPEATS) -> list[float]:
    """Medians in milliseconds, one per repeat: device time of an engine, wall time of an ONNX file on the CPU."""
    sample = chosen_samples(find_reference(request.subject, request.reference), [point])[0]
    if is_engine(request.subject):
        from trtconv.backends.runtime.latency import WARM_UP_S, measure_engine
        from trtconv.backends.select import backend_of

        session = backend_of(request.subject).load(request.subject, **_session_options(request))
        try:
            if not within_profiles(sample, session.profiles):
                raise InvalidRequestError(f"the point {sample.point} is outside the engine's profiles")
            return [
                1e3
                * measure_engine(
                    session,
                    sample.inputs,
                    point=point,
                    seconds=SECONDS_PER_RUN,
                    warm_up=WARM_UP_BETWEEN if number else WARM_UP_S,
                ).device.median
                for number in range(repeats)
            ]
        finally:
            session.close()
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
    from trtconv.backends.runtime.latency import percentiles
    from trtconv.check.gate.bench import wall_times

    runner = OnnxRuntimeRunner(request.subject, optimize=True)
    return [1e3 * percentiles(wall_times(runner, sample.inputs, SECONDS_PER_RUN)).median for _ in range(repeats)]


def _session_options(request: CheckRequest) -> dict[str, Any]:
    return {"plugins": request.plugins, "foreign": request.foreign, "code": request.code}


def measure_again(
    request: CheckRequest, before: Mapping[str, Measurement], names: Iterable[str]
) -> dict[str, Measurement]:
    """`before` with the named latencies measured once more, each the faster of both: other work only ever slows."""
    values = dict(before)
    for name in names:
        again = measurement(latency_runs(request, name[len(LATENCY) :]))
        values[name] = min(values[name], again, key=lambda m: m.value)
    return values


def _engine_bytes(request: CheckRequest) -> Measurement:
    return Measurement(float(_engine(request).stat().st_size))


def _build_seconds(request: CheckRequest) -> Measurement:
    return Measurement(float(_manifest(request).seconds))


def _device_memory(request: CheckRequest) -> Measurement:
    from trtconv.backends.select import backend_of

    session = backend_of(_engine(request)).load(request.subject, **_session_options(request))
    try:
        return Measurement(float(session.device_memory_bytes))
    finally:
        session.close()


def _unsupported_nodes(request: CheckRequest) -> Measurement:
    from trtconv.backends.select import backend_of, choose_backend

    backend = backend_of(request.subject) if is_engine(request.subject) else choose_backend("auto")
    refused = backend.supports(_graph(request))
    return Measurement(float(len(refused)), places=tuple({"node": p.node or p.op_type} for p in refused))


def _plugin_nodes(request: CheckRequest) -> Measurement:
    nodes = [n for n in load_model(_graph(request)).graph.node if is_plugin(n.domain, n.op_type)]
    places = []
    for node in nodes:
        origin = origin_of(node)
        places.append({"node": node.name, "module": origin.module, "source": origin.source})
    return Measurement(float(len(nodes)), places=tuple(places))


def is_plugin(domain: str, op_type: str) -> bool:
    """True for a node that needs a plugin: outside ONNX's own domains, or with the suffix of TensorRT's plugins."""
    return domain not in ("", "ai.onnx", "ai.onnx.ml") or op_type.endswith(("_TRT", "_TensorRT"))


def _precision_share(request: CheckRequest) -> Measurement:
    """Of the engine's own layers where it runs; elsewhere of the float tensors of the network it was built from."""
    manifest = _manifest(request)
    target_dtype = {p.name: p.dtype for p in TYPED}.get(manifest.precision, manifest.precision)
    layers = _float_layers(request)
    if layers:
        others = tuple({"node": n.rpartition(" + ")[2]} for n, dtype in layers if dtype != target_dtype)
        return Measurement(1.0 - len(others) / len(layers), places=others)
    floats = {n: c for n, c in manifest.types.items() if "float" in n}
    if not floats:
        raise InvalidRequestError("the engine's manifest does not say its element types")
    return Measurement(floats.get(target_dtype, 0) / sum(floats.values()))


def _float_layers(request: CheckRequest) -> list[tuple[str, str]]:
    """(name, element type) of every layer that computes floats; empty where the engine cannot run."""
    from trtconv.backends.select import backend_of

    try:
        session = backend_of(_engine(request)).load(request.subject, **_session_options(request))
    except TrtconvError:
        return []
    try:
        # A run sets the shapes, without which 8.6 reports no types.
        layers = session.layers(1)
    except TrtconvError:
        return []
    finally:
        session.close()
    return [
        (layer.name, dtype)
        for layer in layers
        if not layer.kind.endswith(MOVES)
        for dtype in [next((t.dtype for t in layer.outputs if t.dtype), "")]
        if "float" in dtype
    ]


def _engine(request: CheckRequest) -> Path:
    if not is_engine(request.subject):
        raise InvalidRequestError(f"'{request.subject.name}' is not an engine")
    return request.subject


def _manifest(request: CheckRequest) -> Any:
    from trtconv.backends.tensorrt.manifest import read_engine_manifest

    if not manifest_path(_engine(request)).exists():
        raise InvalidRequestError("the engine has no manifest beside it")
    return read_engine_manifest(request.subject, verify=False)


def _graph(request: CheckRequest) -> Path:
    path = graph_of(request.subject)
    if path is None:
        raise InvalidRequestError("the ONNX file that it was built from is not beside it")
    return path


_MEASURES = {
    "engine_bytes": _engine_bytes,
    "build_seconds": _build_seconds,
    "device_memory_bytes": _device_memory,
    "unsupported_nodes": _unsupported_nodes,
    "plugin_nodes": _plugin_nodes,
    "precision_share": _precision_share,
}
