"""Build every prepared example with TensorRT and check the engine at all sample points: FOLDER JSON

FOLDER/NAME/ holds model.trt.onnx and model.reference.safetensors (`speed.gpu_prepare` makes them). No torch is
needed. Each example is built twice with one timing cache, so that the table shows what the cache saves.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks.record import machine, write_result
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.build import build_engine
from trtconv.check import check_model
from trtconv.core.errors import TrtconvError
from trtconv.core.requests import BuildRequest, CheckRequest
from trtconv.core.shape_space.space import ShapeSpace


def example(folder: Path) -> dict[str, object]:
    record: dict[str, object] = {"name": folder.name}
    model = folder / "model.trt.onnx"
    if not model.exists():
        log = folder / "log"
        words = log.read_text().strip().splitlines()[-4:] if log.exists() else []
        return {**record, "verdict": "not exported", "words": words}
    cache = folder / "timing.cache"
    request = BuildRequest(model, folder / "model.engine", dynamic=ShapeSpace(), backend="tensorrt", timing_cache=cache)
    try:
        build_result = build_engine(request)
        again = build_engine(replace(request, output=folder / "again.engine"))
        manifest = read_engine_manifest(build_result.engine)
        in_builder = [read_engine_manifest(b.engine).timing_cache.get("builder_s", 0.0) for b in (build_result, again)]
        record |= {
            "build_s": round(build_result.seconds, 2),
            "build_with_cache_s": round(again.seconds, 2),
            "cache_ratio": round(again.seconds / build_result.seconds, 2),
            "builder_s": in_builder,
            "builder_cache_ratio": round(in_builder[1] / in_builder[0], 2) if in_builder[0] else None,
            "engine_mib": round(build_result.engine_bytes / 2**20, 1),
            "layers": manifest.layers,
            "warnings": len(build_result.messages),
        }
        start = time.monotonic()
        report = check_model(CheckRequest(build_result.engine, reference=folder / "model.reference.safetensors"))
    except TrtconvError as error:
        return {**record, "verdict": "refused", "words": [error.message, *error.details[:6]]}
    worst = report.worst
    return {
        **record,
        "verdict": "equal" if report.passed else "NOT EQUAL",
        "points": len({c.point for c in report.comparisons}),
        "worst": worst.as_dict() if worst else None,
        "check_s": round(time.monotonic() - start, 1),
        "failures": [c.as_dict() for c in report.comparisons if not c.passed][:5],
        "findings": [f.message for f in report.findings],
        "runner": report.runner,
    }


def main() -> None:
    root, output = Path(sys.argv[1]), Path(sys.argv[2])
    names = sys.argv[3:]
    folders = [p for p in sorted(root.iterdir()) if p.is_dir() and (not names or p.name in names)]
    results = []
    for folder in folders:
        result = example(folder)
        results.append(result)
        print({k: v for k, v in result.items() if k not in ("worst", "failures")}, flush=True)
        data = {**machine("tensorrt", "onnx", "onnxruntime"), "examples": results}
        write_result(output, data)


if __name__ == "__main__":
    main()
