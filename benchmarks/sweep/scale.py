"""A sweep of 10,000 jobs with a simulated clock and faults: what the driver itself costs, and how its files grow.

    python -m benchmarks sweep.scale [--jobs 1000 10000] [-o FILE]

Driver, schedule, keys, store look-ups and ledger (with its fsyncs) are the real ones; only the machines are simulated.
The overhead is the driver's own time beside the time that the fleet works, and what the fleet loses by waiting.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from benchmarks.record import write_result
from benchmarks.sweep.simulated_pool import SECONDS, WORKER_START_S, Faults, SimulatedPool
from trtconv.sweep.atlas.atlas import write_atlas
from trtconv.sweep.engine.driver import Driver, SweepSetting
from trtconv.sweep.engine.verdicts import judge_cells
from trtconv.sweep.ledger.ledger import Ledger
from trtconv.sweep.plan.cells import make_matrix
from trtconv.sweep.plan.file import validate_sweep
from trtconv.sweep.plan.jobs import make_jobs
from trtconv.sweep.store.storage import open_storage
from trtconv.sweep.store.store import Store

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "benchmarks/results/sweep_scale.json"
JOBS_OF_A_MODEL = 47
# Nodes of each class, and how many jobs one runs at once.
NODES = {"cpu": (8, 16), "H100": (4, 4), "L4": (4, 2)}
# An hour of one GPU or CPU in dollars: list prices of clouds, rounded; only their product with hours is used.
PRICES = {"cpu": 0.05, "H100": 4.0, "L4": 0.8}


class SilentView:
    def event(self, result, *, final):
        pass

    def tick(self, schedule):
        pass


def make_sweep(jobs: int):
    """A sweep of about so many jobs: 3 targets, 2 precisions, 2 GPU kinds."""
    return validate_sweep(
        {
            "sweep": {
                "targets": ["tensorrt-rtx", "tensorrt==10", "tensorrt==11"],
                "precisions": ["fp32", "fp16"],
                "gpus": ["H100", "L4"],
            },
            "model": [
                {"name": f"m{i}", "module": "package.nets:net", "inputs": ["x:float32[N]"]}
                for i in range(max(1, round(jobs / JOBS_OF_A_MODEL)))
            ],
        },
        "simulated",
    )


def memory() -> int:
    """The most memory that this process had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def simulate(jobs: int, seed: int) -> dict[str, object]:
    """Run one simulated sweep in this process."""
    base = memory()
    with tempfile.TemporaryDirectory(prefix="sweep-scale-") as name:
        folder = Path(name)
        began = time.perf_counter()
        sweep = make_sweep(jobs)
        matrix = make_matrix(sweep, folder)
        graph = make_jobs(sweep, matrix)
        planned = time.perf_counter() - began
        pool = SimulatedPool(NODES, Faults(), seed)
        setting = SweepSetting(matrix.models, {}, str(folder / "store"), folder, retries=3)
        with Ledger(folder) as ledger:
            number = ledger.begin({}, 0.0)
            store = Store(open_storage(setting.store))
            driver = Driver(graph, setting, pool, store, ledger, number, SilentView(), clock=pool.clock)
            cpu, began = time.process_time(), time.perf_counter()
            driver.run({})
            driven, driven_cpu = time.perf_counter() - began, time.process_time() - cpu
            began = time.perf_counter()
            ledger.results(number)
            read = time.perf_counter() - began
            verdicts = judge_cells(graph, driver.schedule.results)
            attempts = sum(map(len, ledger.attempts(number).values()))
            highest = memory()
            began = time.perf_counter()
            atlas = write_atlas(folder, sweep, graph.jobs, verdicts, ledger, number, store)
            written = time.perf_counter() - began
        page = atlas.index.stat().st_size
        size = sum(p.stat().st_size for p in folder.glob("ledger.db*"))
    bound = max(pool.busy_s[c] / (n * s) for c, (n, s) in NODES.items())
    hours = {c: s / 3600 for c, s in pool.busy_s.items()}
    return {
        "jobs": len(graph.jobs), "cells": len(matrix.cells), "attempts": attempts, "nodes_lost": pool.nodes_lost,
        "outcomes": dict(Counter(r.outcome for r in driver.schedule.results.values())),
        "blocked": len(driver.schedule.blocked), "states": dict(Counter(v.state for v in verdicts)),
        "plan_s": round(planned, 3), "driver_s": round(driven, 3), "driver_cpu_s": round(driven_cpu, 3),
        "driver_ms_per_attempt": round(1e3 * driven / attempts, 3), "simulated_h": round(pool.now / 3600, 3),
        "driver_share": round(driven / pool.now, 5), "lower_bound_h": round(bound / 3600, 3),
        "lost_by_waiting": round(pool.now / bound - 1, 4),
        "worker_start_share": round(WORKER_START_S * attempts / sum(pool.busy_s.values()), 4),
        "memory_bytes": highest - base, "memory_bytes_per_job": round((highest - base) / len(graph.jobs)),
        "page_bytes": page, "write_atlas_s": round(written, 3),
        "ledger_bytes": size, "ledger_bytes_per_attempt": round(size / attempts), "read_ledger_s": round(read, 3),
        "hours": {c: round(h, 2) for c, h in hours.items()},
        "price": {c: round(h * PRICES[c], 2) for c, h in hours.items()},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--jobs", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    if arguments.one:
        import json

        print(json.dumps(simulate(arguments.one, arguments.seed)))
        return
    data: dict[str, object] = {
        "date": time.strftime("%Y-%m-%d"), "python": platform.python_version(), "seed": arguments.seed,
        "command": "python -m benchmarks sweep.scale " + " ".join(map(str, arguments.jobs)),
        "assumed": {"median_seconds": SECONDS, "worker_start_s": WORKER_START_S, "nodes": NODES,
                    "prices": PRICES, "faults": vars(Faults())},
        "load_average": os.getloadavg()[0], "sweeps": [],
    }  # fmt: skip
    for jobs in arguments.jobs:
        # A process of its own each, whose highest memory is that of this sweep.
        words = [sys.executable, "-m", "benchmarks", "sweep.scale", "--one", str(jobs), "--seed", str(arguments.seed)]
        ended = subprocess.run(words, capture_output=True, text=True, check=False, cwd=ROOT)
        if ended.returncode:
            sys.exit(ended.stderr)
        import json

        data["sweeps"].append(json.loads(ended.stdout))
        print(data["sweeps"][-1], flush=True)
        write_result(arguments.output, data)


if __name__ == "__main__":
    main()
