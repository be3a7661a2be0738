"""nvidia-modelopt's default INT8 recipe beside trtconv's on the digits networks, emulated: KIT SITE JSON [KIND ...]

KIT is what `precision.gpu_prepare` made, SITE a folder with nvidia-modelopt[onnx] and the onnx and onnxruntime that it
pins (`pip install --target SITE`), which only a child process sees. Both calibrate with the same samples and are judged
on the same others. What an engine makes of either graph is not in it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.precision.cases import CASES, Case
from benchmarks.precision.engines import judged, quantised_layers
from benchmarks.precision.gpu_prepare import rewrite
from benchmarks.record import machine, write_result

CHILD = """
import sys, numpy as np
from modelopt.onnx.quantization import quantize
options = dict(word.split("=") for word in sys.argv[4:])
data = {"x": np.load(sys.argv[2])}
quantize(sys.argv[1], calibration_data=data, calibration_eps=["cpu"], output_path=sys.argv[3], **options)
"""


def quantise_theirs(folder: Path, samples: np.ndarray, site: Path, model: str = "model.onnx", **options: str) -> Path:
    """Their graph from one of the folder's, made in a process that sees their packages first."""
    data, output = folder / "calibration.npy", folder / "modelopt.onnx"
    words = [f"{name}={value}" for name, value in options.items()]
    np.save(data, samples)
    child = subprocess.run(
        [sys.executable, "-c", CHILD, str(folder / model), str(data), str(output), *words],
        env={**os.environ, "PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=False,
    )
    if not output.exists():
        raise RuntimeError((child.stdout + child.stderr)[-600:])
    return output


def calibration_rows(case: Case, folder: Path) -> np.ndarray:
    """The samples with which trtconv calibrates, [samples, ...]."""
    from trtconv.core.data.source import DataSource, read_data
    from trtconv.core.data.split import split
    from trtconv.core.model.file import load_model, signature

    described = signature(load_model(folder / "model.onnx"))
    return np.stack([s.inputs["x"] for s in split(read_data(DataSource(case.source), described.inputs)).calibration])


def describe(path: Path, folder: Path, kind: str) -> dict[str, Any]:
    """The metric of a quantised graph, and what is quantised in it."""
    from trtconv.backends.onnxruntime.half_emulation import emulated_runner
    from trtconv.core.model.file import load_model

    model = load_model(path, weights=True)
    pairs = Counter(n.op_type for n in model.graph.node)["DequantizeLinear"]
    return {
        "metric": round(judged(emulated_runner(model), folder, kind), 5),
        "pairs": pairs,
        "layers": len(quantised_layers(path)),
        "opset": model.opset_import[0].version,
    }


def one(case: Case, folder: Path, site: Path) -> dict[str, Any]:
    samples = calibration_rows(case, folder)
    results: dict[str, Any] = {
        "metric": case.metric,
        "fp32": describe(folder / "fp32.onnx", folder, case.kind)["metric"],
    }
    for name, make in (
        ("trtconv", lambda: rewrite(folder, "ours", "int8", case.source, target="tensorrt-rtx")),
        ("modelopt", lambda: quantise_theirs(folder, samples, site)),
    ):
        try:
            results[name] = describe(make(), folder, case.kind)
        except Exception as error:
            results[name] = {"error": f"{type(error).__name__}: {error}"[-600:]}
    return results


def main(kit: Path, site: Path, output: Path, kinds: list[str]) -> None:
    version = next(site.glob("nvidia_modelopt-*.dist-info")).name.split("-")[1].removesuffix(".dist")
    data: dict[str, Any] = {**machine("onnx", "onnxruntime"), "nvidia-modelopt": version, "networks": {}}
    for kind in kinds or list(CASES):
        data["networks"][kind] = one(CASES[kind], kit / kind, site)
        write_result(output, data)
        print(kind, json.dumps(data["networks"][kind]), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4:])
