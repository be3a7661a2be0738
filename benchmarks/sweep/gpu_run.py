"""The sweep of `gpu_prepare` on the GPUs of this machine: `python -m benchmarks sweep.gpu_run MODELS OUT [--gpus N]`.

Writes the atlas, and `sweep_N.json`: seconds in all, verdict and latencies of each cell, what each job took and which
GPU it had. Another run with other GPUs has a store of its own, so that it builds everything again. With `--limit`
the sweep is interrupted (as by Ctrl-C) after so many seconds; a further run goes on. With `--only` it is a part of the
sweep, and `--name` gives it a store and a record of its own: so one GPU and two are compared in one lease.
"""

from __future__ import annotations

import argparse
import os
import platform
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from benchmarks.record import write_result

ROOT = Path(__file__).resolve().parents[2]
CELL_FACTS = ("id", "state", "reason", "message", "latency_s", "seconds")
HEAD = """\
[sweep]
name = "{name}"
targets = ["tensorrt==8.6"]
precisions = ["fp32", "fp16"]
gpus = ["{gpu}"]

[contracts.half-a-point]
metric = "top1"
max_drop = "0.5%"
precisions = ["fp16"]
data = "{data}:digits"

[resources.build]
seconds = 240

[resources.tune]
seconds = 240

[[include]]
model = "digits_resnet"
target = "tensorrt==8.6"
precision = "half-a-point"
gpu = "{gpu}"
"""


def gpu_kind() -> str:
    """What Ray calls the GPUs of this machine, or `none`."""
    from ray._private.accelerators import NvidiaGPUAcceleratorManager as Manager

    return Manager.get_current_node_accelerator_type() or "none"


def write_sweep(models: Path, gpu: str, count: int) -> Path:
    """The sweep file beside the models. Without a GPU: what can be done on CPUs."""
    data = ROOT / "examples" / "digits" / "data.py"
    path = models / "sweep.toml"
    head = HEAD.format(name=f"{count} x {gpu}, TensorRT 8.6", gpu=gpu, data=data)
    path.write_text(head + (models / "models.toml").read_text())
    return path


def run_sweep(
    sweep: Path, atlas: Path, gpus: int, workers: int, limit: float, only: list[str]
) -> tuple[int | None, float]:
    """Exit code (None: interrupted at the limit) and seconds of one sweep on the first so many GPUs."""
    visible = {"CUDA_VISIBLE_DEVICES": ",".join(map(str, range(gpus)))} if gpus else {}
    words = ["sweep", str(sweep), "-o", str(atlas), "--resume", "--workers", str(workers)]
    words += [word for pattern in only for word in ("--only", pattern)]
    start = time.monotonic()
    process = subprocess.Popen([sys.executable, "-m", "trtconv", *words], env={**os.environ, **visible})
    try:
        code: int | None = process.wait(timeout=limit)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        process.wait()
        code = None
    return code, time.monotonic() - start


def facts_of(atlas: Path) -> dict[str, object]:
    """What the ledger and the page's data say."""
    import json

    from trtconv.sweep.ledger.ledger import Ledger

    with Ledger(atlas) as ledger:
        last = ledger.sweeps()[0].id
        attempts, results = ledger.attempts(last), ledger.results(last)
    with sqlite3.connect(atlas / "ledger.db") as db:
        spans = db.execute("SELECT job, started, ended FROM jobs WHERE sweep = ?", (last,)).fetchall()
    begin = min((s for _, s, _ in spans if s), default=0.0)
    data = json.loads((atlas / "sweep.json").read_text())
    return {
        "counts": data["counts"],
        "cells": [{k: cell[k] for k in CELL_FACTS} for cell in data["cells"]],
        "jobs": [
            {"job": job, "began_s": round((s or begin) - begin, 1), "ended_s": round((e or begin) - begin, 1),
             "seconds": round(results[job].seconds, 2), "outcome": results[job].outcome,
             "attempts": len(attempts.get(job, ())), "facts": dict(results[job].facts)}
            for job, s, e in sorted(spans, key=lambda r: r[1] or 0.0) if job in results
        ],
        "outcomes": dict(Counter(r.outcome for r in results.values())),
        "timing_caches": len(list((atlas / "store" / "timings").rglob("*.cache"))),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", type=Path)
    parser.add_argument("output", type=Path)
    parser.add_argument("--gpus", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--limit", type=float, default=540.0)
    parser.add_argument("--only", action="append", default=[], help="a pattern of cells, as `trtconv sweep` takes it")
    parser.add_argument("--name", default="", help="of the atlas and the record (default: the number of GPUs)")
    arguments = parser.parse_args()
    kind = gpu_kind() if arguments.gpus else "none"
    sweep = write_sweep(arguments.models, kind, arguments.gpus)
    label = arguments.name or str(arguments.gpus)
    atlas = arguments.models / f"atlas_{label}"
    code, seconds = run_sweep(sweep, atlas, arguments.gpus, arguments.workers, arguments.limit, arguments.only)
    # Beside the models too: a run that goes on adds its seconds to those of the one before.
    name = f"sweep_{label}.json"
    record = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "gpu": kind,
        "gpus": arguments.gpus,
        "cores": os.cpu_count(),
        "only": arguments.only,
        "exit_code": code,
        "runs_s": [*read(arguments.models / name).get("runs_s", []), round(seconds, 1)],
        **facts_of(atlas),
    }
    for folder in (arguments.models, arguments.output):
        write_result(folder / name, record)
    print(f"{arguments.gpus} x {kind}: exit code {code} after {seconds:.0f} s", flush=True)


def read(path: Path) -> dict[str, list[float]]:
    """What an earlier run wrote, where one did."""
    import json

    return json.loads(path.read_text()) if path.exists() else {}


if __name__ == "__main__":
    main()
