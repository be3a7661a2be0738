"""What the children of `gpu_run` do; each writes its JSON into the file that is named last."""

from __future__ import annotations

import json
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.precision.cases import CASES, DYNAMIC, PRECISIONS, VARIANTS
from benchmarks.precision.engines import build, judged, layers_of, open_engine, opt_inputs, quantised_layers, timed

RIVALS = ("fp16", "int8", "modelopt")


def attempt(results: dict[str, Any], name: str, step: Callable[[], Any], file: str) -> bool:
    """One step: its result or its error under `name`, on disk at once."""
    try:
        results[name] = step()
        succeeded = True
    except Exception as error:
        details = list(getattr(error, "details", ()))[:6]
        results[name] = {
            "error": f"{type(error).__name__}: {error}"[:600],
            "details": details,
            "trace": traceback.format_exc()[-400:],
        }
        succeeded = False
    Path(file).write_text(json.dumps(results))
    return succeeded


def digits(folder: str, file: str) -> None:
    """Build and judge a trained network in each precision."""
    path, results = Path(folder), {}
    chosen = quantised_layers(path / "int8.onnx")

    def one(precision: str) -> dict[str, Any]:
        facts = build(path, precision, DYNAMIC)
        session = open_engine(path / f"{precision}.engine")
        facts["metric"] = judged(session, path, path.name)
        facts["engine"], _ = layers_of(session, chosen)
        session.close()
        return facts

    results["metric"] = CASES[path.name].metric
    for precision in PRECISIONS:
        attempt(results, precision, lambda p=precision: one(p), file)


def variants(folder: str, file: str) -> None:
    """Build and judge a trained network that is quantised in several ways."""
    path, results = Path(folder), {}

    def one(name: str) -> dict[str, Any]:
        facts = build(path, name, DYNAMIC, precision="int8")
        session = open_engine(path / f"{name}.engine")
        facts["metric"] = judged(session, path, path.name)
        facts["engine"], _ = layers_of(session, quantised_layers(path / f"{name}.onnx"))
        session.close()
        return facts

    for name in VARIANTS[path.name]:
        attempt(results, name, lambda n=name: one(n), file)


def latency(root: str, file: str) -> None:
    """Latencies of the digits networks that were built, each beside its FP32 engine."""
    _time_in_turn(Path(root), tuple(CASES), PRECISIONS, file)


def rivals_latency(root: str, *words: str) -> None:
    """Latencies of the networks of `rivals`, each beside its fp16 engine: kinds, and the file."""
    _time_in_turn(Path(root), words[:-1], RIVALS, words[-1])


def _time_in_turn(root: Path, kinds: Sequence[str], engines: Sequence[str], file: str) -> None:
    results: dict[str, Any] = {}
    for kind in kinds:
        folder = root / kind
        names = [name for name in engines if (folder / f"{name}.engine").exists()]

        def one(folder: Path = folder, names: list[str] = names) -> dict[str, Any]:
            sessions = {n: open_engine(folder / f"{n}.engine") for n in names}
            result = timed(sessions, opt_inputs(folder))
            for session in sessions.values():
                session.close()
            return result

        if names:
            attempt(results, kind, one, file)


def speed(folder: str, batch: str, out: str, file: str, dedicated: str = "") -> None:
    """fp16 and INT8 of a large network at one batch size, and `dedicated` INT8 with a pair for each reader."""
    from benchmarks.precision.dedicated import dedicate
    from benchmarks.precision.recipes import restore

    source, results = Path(folder), {}
    work = source / f"batch{batch}"
    work.mkdir(exist_ok=True)
    names = ["fp16", "int8"]
    for name in names:
        restore(source / f"{name}.onnx", work / f"{name}.onnx")
    if dedicated:
        dedicate(work / "int8.onnx", work / "int8 dedicated.onnx")
        names.append("int8 dedicated")
    inputs = {"x": np.random.default_rng(1).standard_normal((int(batch), 3, 224, 224), dtype=np.float32).clip(-2, 2)}
    sessions, outputs, cache = {}, {}, work / "timing.cache"
    for name in names:
        precision = name.split()[0]
        if attempt(
            results,
            name,
            lambda n=name, p=precision: build(work, n, f"N={batch}", precision=p, timing_cache=cache),
            file,
        ):
            sessions[name] = open_engine(work / f"{name}.engine")
            outputs[name] = {n: a.astype(np.float64) for n, a in sessions[name](inputs).items()}
            attempt(results, "latency", lambda: timed(sessions, inputs), file)
    chosen, listed = quantised_layers(work / "int8.onnx"), {}
    for name, session in sessions.items():
        short, listed[name] = layers_of(session, chosen)
        attempt(results[name], "engine", lambda s=short: s, f"{file}.part")
    add_to(Path(out, "layers.json"), f"{source.name} batch {batch}", listed)
    attempt(results, "decibels_against_fp16", lambda: decibels(outputs), file)


def rivals(folder: str, file: str) -> None:
    """fp16, and INT8 as trtconv and as nvidia-modelopt place it, of a trained network: built and judged."""
    path, results = Path(folder), {}

    def one(name: str) -> dict[str, Any]:
        facts = build(path, name, DYNAMIC, precision="fp16" if name == "fp16" else "int8")
        session = open_engine(path / f"{name}.engine")
        facts["metric"] = judged(session, path, path.name)
        facts["engine"], _ = layers_of(session, quantised_layers(path / f"{name}.onnx"))
        session.close()
        return facts

    results["metric"] = CASES[path.name].metric
    for name in RIVALS:
        attempt(results, name, lambda n=name: one(n), file)


def add_to(path: Path, name: str, data: Any) -> None:
    """Another entry in a JSON file; the parts that write it run one after the other."""
    entries = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps({**entries, name: data}))


def decibels(outputs: dict[str, dict[str, np.ndarray]]) -> dict[str, float]:
    """How far INT8 is from fp16, which is near enough to FP32 for that."""
    from trtconv.rewrite.precision.qdq.step import decibels as ratio

    first = outputs["fp16"]
    return {n: min(ratio(first[o], values[o]) for o in first) for n, values in outputs.items() if n != "fp16"}
