"""Engines of one network side by side: built, judged on its data, timed in turn, and asked for their layers."""

from __future__ import annotations

import statistics
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.precision.cases import CASES, DYNAMIC

ROUNDS, SECONDS = 7, 0.12


def build(folder: Path, name: str, dynamic: str, **options: Any) -> dict[str, Any]:
    """`folder/name.onnx` into `folder/name.engine`, in this process; what is to be said of the build."""
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.build import build_engine
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import parse_space

    start = time.monotonic()
    request = BuildRequest(
        folder / f"{name}.onnx",
        folder / f"{name}.engine",
        dynamic=parse_space([dynamic]),
        backend="tensorrt",
        precision=options.pop("precision", name),
        **options,
    )
    result = build_engine(request)
    manifest = read_engine_manifest(result.engine)
    return {
        "build_s": round(time.monotonic() - start, 1),
        "bytes": result.engine_bytes,
        "types": dict(manifest.types),
        "messages": list(result.messages)[:12],
    }


def open_engine(path: Path) -> Any:
    from trtconv.backends.select import backend_of

    return backend_of(path).load(path)


def layers_of(session: Any, chosen: Sequence[str]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """What the engine says of its layers: in short, and each one."""
    from trtconv.tune.engine_layers import read_engine_layers

    layers = session.layers(runs=20)
    read = read_engine_layers(layers)
    short = {
        **read.as_dict(),
        "chosen": len(chosen),
        "share_int8": read.share(chosen, "int8"),
        "chosen_elsewhere": list(read.elsewhere(chosen, "int8")),
    }
    rows = [
        {"name": x.name[:160], "kind": x.kind, "in": [t.dtype for t in x.inputs], "out": [t.dtype for t in x.outputs],
         "tactic": x.tactic[:120], "us": round(1e6 * x.seconds, 2)}
        for x in layers
    ]  # fmt: skip
    return short, rows


def quantised_layers(model: Path) -> list[str]:
    """The layers of a quantised graph that read their weight through a pair."""
    import onnx

    from trtconv.rewrite.precision.qdq.layers import LAYER_OPS

    graph = onnx.load(str(model), load_external_data=False).graph
    makers = {o: n.op_type for n in graph.node for o in n.output}
    layers = [n for n in graph.node if n.op_type in LAYER_OPS and len(n.input) > 1]
    return [n.name for n in layers if makers.get(n.input[1]) == "DequantizeLinear"]


def labels_of(data: Mapping[str, np.ndarray]) -> list[Any]:
    """The labels as a metric takes them, from the columns that `gpu_prepare` wrote."""
    columns = {n.removeprefix("label_"): data[n] for n in data if n.startswith("label_")}
    if columns:
        count = len(next(iter(columns.values())))
        return [{n: c[i] for n, c in columns.items()} for i in range(count)]
    return list(data["label"])


def judged(session: Any, folder: Path, kind: str) -> float:
    """The metric of a network's judging part, by the engine's own outputs."""
    from trtconv.core.data.samples import batches, rows_to_samples
    from trtconv.core.model.file import load_model, signature
    from trtconv.tune.metrics.registry import METRICS

    described = signature(load_model(folder / "model.onnx"))
    with np.load(folder / "judging.npz", allow_pickle=False) as data:
        labels = labels_of(data)
        samples = rows_to_samples({"x": data["x"]}, None, "the judging part")
    outputs: dict[str, list[np.ndarray]] = {}
    for batch in batches(samples, described.inputs, described.space):
        for name, rows in session(batch.inputs).items():
            outputs.setdefault(name, []).extend(rows[: batch.count])
    return METRICS[CASES[kind].metric].compute(outputs, labels)


def timed(sessions: Mapping[str, Any], inputs: Mapping[str, np.ndarray], rounds: int = ROUNDS) -> dict[str, Any]:
    """Median device time of a CUDA graph in each of several rounds, in turn; ratios are taken within a round."""
    from trtconv.backends.runtime.latency import measure_engine

    seconds: dict[str, list[float]] = {name: [] for name in sessions}
    for _ in range(rounds):
        for name, session in sessions.items():
            latency = measure_engine(session, inputs, point="opt", cuda_graph=True, seconds=SECONDS, warm_up=0.05)
            seconds[name].append(latency.device.median)
    first = next(iter(sessions))
    return {
        name: {
            "ms": round(1e3 * statistics.median(values), 5),
            f"times_as_fast_as_{first}": round(
                statistics.median(a / b for a, b in zip(seconds[first], values, strict=True)), 4
            ),
            "rounds_ms": [round(1e3 * v, 5) for v in values],
        }
        for name, values in seconds.items()
    }


def opt_inputs(folder: Path) -> dict[str, np.ndarray]:
    """One batch at the opt size of the digits."""
    size = int(DYNAMIC.split(":")[1])
    with np.load(folder / "judging.npz", allow_pickle=False) as data:
        return {"x": np.ascontiguousarray(data["x"][:size])}
