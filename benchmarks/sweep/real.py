"""What a sweep of real.toml came to, out of its ledger: `python -m benchmarks sweep.real ATLAS [-o FILE]`."""

from __future__ import annotations

import argparse
import os
import platform
import sqlite3
import time
from collections import Counter
from pathlib import Path

from benchmarks.record import write_result
from trtconv.sweep.engine.verdicts import judge_cells
from trtconv.sweep.ledger.ledger import Ledger
from trtconv.sweep.plan.cells import make_matrix
from trtconv.sweep.plan.file import read_sweep
from trtconv.sweep.plan.jobs import jobs_kind, make_jobs

ROOT = Path(__file__).resolve().parents[2]
SWEEP = ROOT / "benchmarks/sweep/real.toml"
OUTPUT = ROOT / "benchmarks/results/sweep_real.json"


def record(atlas: Path) -> dict[str, object]:
    """Jobs and cells of the last sweep into an atlas; one whose driver is gone may be incomplete."""
    sweep = read_sweep(SWEEP)
    matrix = make_matrix(sweep, SWEEP.parent)
    graph = make_jobs(sweep, matrix)
    with Ledger(atlas) as ledger:
        last = ledger.sweeps()[0]
        attempts, results = ledger.attempts(last.id), ledger.results(last.id)
    with sqlite3.connect(atlas / "ledger.db") as db:
        rows = db.execute("SELECT job, outcome FROM attempts WHERE sweep = ? AND seconds > 0", (last.id,)).fetchall()
    verdicts = judge_cells(graph, results)
    worked = Counter(job for job, _ in rows)
    seconds: Counter[str] = Counter()
    for job, tries in attempts.items():
        seconds[jobs_kind(job)] += sum(t[1] for t in tries)
    needed_by = Counter(job for chain in graph.of_cell.values() for job in chain)
    return {
        "state": last.state, "networks": len(matrix.models), "cells": len(graph.of_cell), "jobs": len(graph.jobs),
        "jobs_without_sharing": sum(needed_by.values()),
        "jobs_with_a_result": len(results),
        "jobs_done_twice": sorted(j for j, n in worked.items() if n > 1 and results[j].ok and not again(attempts[j])),
        "results_by_kind": {k: dict(c) for k, c in by_kind(results).items()},
        "seconds_by_kind": {k: round(s) for k, s in seconds.items()},
        "states": dict(Counter(v.state for v in verdicts)),
        "complete_networks": len(matrix.models) - len({v.cell.model for v in verdicts if v.state == "open"}),
        "red": {v.cell.id: f"{v.reason}: {v.message.splitlines()[0] if v.message else ''}"
                for v in verdicts if v.state == "red"},
    }  # fmt: skip


def again(tries: list[tuple[str, float, str, str]]) -> bool:
    """True where a job was tried again after a fault: then more than one attempt is as it should be."""
    return [t[0] for t in tries].count("ok") == 1


def by_kind(results) -> dict[str, Counter[str]]:
    """How jobs ended, by kind; `cached` were in the store when the driver asked."""
    counts: dict[str, Counter[str]] = {}
    for job, result in results.items():
        counts.setdefault(jobs_kind(job), Counter())["cached" if result.cached else result.outcome] += 1
    return counts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("atlas", type=Path)
    parser.add_argument("--note", default="", help="how it was run: when its driver was killed, what else ran")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    data: dict[str, object] = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "note": arguments.note,
    }
    write_result(arguments.output, data | record(arguments.atlas))


if __name__ == "__main__":
    main()
