"""Export and rewrite the examples for TensorRT 8.6, side by side, with torch: OUT [--fixed] [NAME ...]

Each ends in OUT/NAME/model.trt.onnx with its reference; OUT/NAME/log says what went wrong otherwise. With --fixed all
dims but the batch have their opt size, as torch.compile has them when it is asked for static shapes.
"""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parents[2]


def fixed_dims(config: str) -> list[str]:
    """`--dynamic` for one size of every dim and batches up to 8."""
    from trtconv.frontend.assemble import load_config, shape_space

    sizes = shape_space(load_config(Path(config))).pick("opt")
    return ["--dynamic", " ".join(f"{d}={v}" for d, v in ({**sizes, "N": "1:1:8"}).items())]


def prepare(name: str, out: Path, fixed: bool) -> dict[str, object]:
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    config = str(ROOT / "examples" / f"{name}.toml")
    model, rewritten = str(folder / "model.onnx"), str(folder / "model.trt.onnx")
    steps = [
        ["export", "--config", config, "-o", model, *(fixed_dims(config) if fixed else [])],
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
    out, fixed = Path(sys.argv[1]), "--fixed" in sys.argv
    names = [n for n in sys.argv[2:] if n != "--fixed"] or sorted(p.stem for p in (ROOT / "examples").glob("*.toml"))
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        results = list(pool.map(lambda name: prepare(name, out, fixed), names))
    for result in results:
        print(f"{result['name']}: exit {result['exit_code']} after {result['seconds']} s", flush=True)
    (out / "prepared.json").write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
