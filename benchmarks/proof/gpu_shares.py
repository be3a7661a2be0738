"""How much of what is allowed real engines need: proof.gpu_shares SWEEP.toml JSON [PRECISION ...], on a GPU.

The models of a sweep's file are exported and rewritten for TensorRT 8.6 at each precision, side by side; then each is
built and checked as `speed.gpu_zoo run` does. `max_share` of a case is its largest error over what is allowed there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from benchmarks.speed import gpu_zoo
from trtconv.core.config import toml_reader
from trtconv.core.precision import FP16, FP32


def prepare(model: dict[str, Any], precision: str, base: Path, root: Path) -> dict[str, Any]:
    """Export and rewrite one model; the record says how far that came."""
    folder = root / f"{model['name']}__{precision}"
    folder.mkdir(parents=True, exist_ok=True)
    inputs = [word for text in model["inputs"] for word in ("--input", text)]
    record = {"case": folder.name, "stage": "export", "precision": precision}
    for stage, words in (
        ("rewrite", ["export", base / model["module"], *inputs, "--dynamic", model["dynamic"], "-o", "model.onnx"]),
        ("prepared", ["rewrite", "model.onnx", "--target", "tensorrt==8.6", "--precision", precision, "-o",
                      "model.trt.onnx"]),
    ):  # fmt: skip
        command = [sys.executable, "-m", "trtconv", *map(str, words)]
        ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
        if ended.returncode:
            record["reason"] = ended.stderr[-300:]
            break
        record["stage"] = stage
    (folder / "prepared.json").write_text(json.dumps(record))
    return record


def main(sweep: Path, output: Path, precisions: list[str]) -> None:
    """Prepare every model at every precision, then build and check the engines."""
    base, root = sweep.resolve().parent, output.with_suffix(".work").resolve()
    models = toml_reader().loads(sweep.read_text())["model"]
    with ThreadPoolExecutor(gpu_zoo.JOBS) as pool:
        work = [pool.submit(prepare, m, p, base, root) for p in precisions for m in models]
        for future in work:
            print(future.result(), flush=True)
    gpu_zoo.run(str(root), str(output))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3:] or [FP32.name, FP16.name])
