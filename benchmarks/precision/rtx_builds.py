"""INT8 and FP8 of the digits networks for TensorRT-RTX, emulated and built: KIT JSON [KIND ...]

KIT is what `precision.gpu_prepare` made. Each network is quantised for TensorRT-RTX with the rest in fp16, judged by
emulation on samples that no calibration saw, and built for compute capability 8.9 and 12.0. Nothing runs on a GPU.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from benchmarks.precision.cases import CASES
from benchmarks.precision.engines import judged
from benchmarks.precision.gpu_prepare import rewrite
from benchmarks.record import machine, write_result

GPUS = ("8.9", "12.0")


def one(folder: Path, kind: str, precision: str) -> dict[str, Any]:
    """One network in one precision: its metric, its size, and whether it was built."""
    from trtconv.backends.onnxruntime.half_emulation import emulated_runner
    from trtconv.build import build_engine
    from trtconv.core.errors import TrtconvError
    from trtconv.core.model.file import load_model
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import ShapeSpace

    name = f"{precision}.rtx"
    data = CASES[kind].source if precision in ("int8", "fp8") else ""
    try:
        path = rewrite(folder, name, precision, data, target="tensorrt-rtx")
        metric = judged(emulated_runner(load_model(path, weights=True)), folder, kind)
        request = BuildRequest(
            path,
            folder / f"{name}.engine",
            dynamic=ShapeSpace(),
            backend="tensorrt-rtx",
            precision=precision,
            compute_capabilities=GPUS,
            isolated=True,
        )
        engine = build_engine(request)
    except TrtconvError as error:
        return {"refused": error.message, "details": list(error.details)[:4]}
    return {"emulated": round(metric, 5), "built_for": list(GPUS), "engine_bytes": engine.engine_bytes}


def main(kit: Path, output: Path, kinds: list[str]) -> None:
    data: dict[str, Any] = {
        **machine("tensorrt-rtx-cu13", "onnx", "onnxruntime"),
        "what": "emulated by ONNX Runtime, built by TensorRT-RTX, not run",
        "networks": {},
    }
    for kind in kinds or list(CASES):
        results = {p: one(kit / kind, kind, p) for p in ("fp32", "fp16", "int8", "fp8")}
        data["networks"][kind] = {"metric": CASES[kind].metric, **results}
        write_result(output, data)
        print(kind, results, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:])
