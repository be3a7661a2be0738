"""Export and rewrite the examples for TensorRT 8.6, side by side, with torch: gpu_prepare.py OUT [NAME ...]

Each ends in OUT/NAME/model.trt.onnx with its reference; OUT/NAME/log says what went wrong otherwise.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]


def prepare(name: str, out: Path) -> dict[str, object]:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    config = str(ROOT / "examples" / f"{name}.toml")
    model, rewritten = str(folder / "model.onnx"), str(folder / "model.trt.onnx")
    steps = [
        ["export", "--config", config, "-o", model],
        ["rewrite", model, "-o", rewritten, "--target", "tensorrt==8.6"],
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "4", "PYTHONPATH": f"{ROOT}:{os.environ.get('PYTHONPATH', '')}"}
    started, code = time.monotonic(), 0
    with open(folder / "log", "w") as log:
        for step in steps:
            command = [sys.executable, "-m", "trtconv", *step]
            code = subprocess.run(command, stdout=log, stderr=log, env=environment).returncode
            if code:
                break
    words = (folder / "log").read_text()[-600:]
    return {"name": name, "exit_code": code, "seconds": round(time.monotonic() - started, 1), "log": words}


def main() -> None:
    out = Path(sys.argv[1])
    names = sys.argv[2:] or sorted(p.stem for p in (ROOT / "examples").glob("*.toml"))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda name: prepare(name, out), names))
    for result in results:
        print(f"{result['name']}: exit {result['exit_code']} after {result['seconds']} s", flush=True)
    (out / "prepared.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
