"""Sweeps whose driver is killed with SIGKILL at random moments and resumed: is anything lost or done twice?

Each round is a sweep of 100 jobs (25 models: export, rewrite, check, build) of the stand-in in tests/sweep, which logs
each command that it begins; what the store holds is noted at each kill. A round ends with a run that nobody kills.
With `--ray N`, N kills hit `trtconv sweep` itself with a Ray of its own; the others a driver with forked workers, whose
start costs milliseconds instead of seconds. The record is written after every round, behind those of earlier runs.
After `--minutes` no further kill is made.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import random
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.record import write_result
from tests.sweep.conftest import Bench, Recorder
from tests.sweep.fork_pool import ForkPool
from trtconv.sweep import SweepRequest, run_sweep

ROOT = Path(__file__).parents[2]
OUTPUT = ROOT / "benchmarks/results/sweep_kills.json"
MODELS = [f"m{i}" for i in range(25)]
JOBS = 4 * len(MODELS)
# How long a command of the stand-in takes, in seconds: long beside the start of a worker, or few are hit by a kill.
FORKED_S, RAY_S = 0.05, 1.0
MOST_NO_STARTS = 20


def start_forked(bench: Bench) -> int:
    """A driver in a forked process; returns its id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            request = SweepRequest(bench.folder / "sweep.toml", bench.atlas, resume=True)
            result = run_sweep(request, Recorder(), open_pool=lambda: ForkPool(4))
            code = 0 if all(v.state == "amber" for v in result.verdicts) else 1
        finally:
            os._exit(code)
    return pid


def start_command(bench: Bench) -> int:
    """`trtconv sweep` as a person starts it; returns its id."""
    words = ["sweep", str(bench.folder / "sweep.toml"), "-o", str(bench.atlas), "--resume", "-q", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen([sys.executable, "-m", "trtconv", *words], env=environment).pid


def kill_later(pid: int, seconds: float, begun: Callable[[], bool]) -> int | None:
    """Kill a process so long after `begun`; the status with which it ended before, or None."""
    end = None
    while end is None or time.monotonic() < end:
        if end is None and begun():
            end = time.monotonic() + seconds
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            return status
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return None


@dataclass(frozen=True)
class Snapshot:
    """What there was at a kill: the results in the store (key -> inode and time), then the bytes of the log."""

    results: Mapping[str, tuple[int, int]]
    log_bytes: int


def take_snapshot(bench: Bench) -> Snapshot:
    """The store first: what the log holds beyond `log_bytes` began when those results were there."""
    return Snapshot(stored_results(bench), log_size(bench))


def stored_results(bench: Bench) -> dict[str, tuple[int, int]]:
    """The records in the store: key -> inode and time of the last change in ns."""
    records = {}
    for path in (bench.atlas / "store" / "results").rglob("*.json"):
        status = path.stat()
        records[path.stem] = (status.st_ino, status.st_mtime_ns)
    return records


def finished_jobs(bench: Bench) -> dict[str, str]:
    """The jobs that the ledger holds as done, by the keys of their results; a reader of its own, as after a crash."""
    with contextlib.closing(sqlite3.connect(bench.atlas / "ledger.db")) as db:
        rows = db.execute("SELECT job, result FROM jobs WHERE result IS NOT NULL").fetchall()
    results = {job: json.loads(text) for job, text in rows}
    return {result["key"]: job for job, result in results.items() if result["outcome"] == "ok"}


def audit(bench: Bench, snapshots: Sequence[Snapshot]) -> dict[str, int]:
    """What a finished round shows: results, jobs done twice, work that a kill cost."""
    results, jobs, log = stored_results(bench), finished_jobs(bench), bench.log.read_bytes()
    starts = Counter(started_in(log))
    again = {
        job
        for snapshot in snapshots
        for job in {jobs.get(key, key) for key in snapshot.results} & set(started_in(log[snapshot.log_bytes :]))
    }
    replaced = {key for snapshot in snapshots for key, file in snapshot.results.items() if results.get(key) != file}
    return {
        "results_in_store": len(results),
        "done_in_ledger": len(jobs),
        "started_after_it_was_published": len(again),
        "published_twice": len(replaced),
        "commands_begun": sum(starts.values()),
        "commands_begun_again_after_a_kill": sum(starts.values()) - len(starts),
        "half_written_results": sum(p.stat().st_size == 0 for p in (bench.atlas / "store/results").rglob("*.json")),
    }


def started_in(log: bytes) -> list[str]:
    """The jobs whose commands began, by the log's lines."""
    return [line.split()[1] for line in log.decode().splitlines() if line.startswith("start ")]


def ray_folders(bench: Bench) -> set[str]:
    """The folders of Rays that the next sweep into the atlas would remove."""
    marker = bench.atlas / ".ray"
    return set(marker.read_text().splitlines()) if marker.exists() else set()


def log_size(bench: Bench) -> int:
    """Bytes of the log to which every command writes as it begins."""
    return bench.log.stat().st_size if bench.log.exists() else 0


def log_grew(bench: Bench, size: int) -> bool:
    """True when a command began since the log had this size."""
    return log_size(bench) > size


def run_rounds(
    kills: int, start: Callable[[Bench], int], longest: float, seed: int, forked: bool, end: float
) -> Iterator[dict[str, object]]:
    """Rounds until so many kills hit, or the clock passes `end`; what they show so far, after each.

    `longest` is the latest moment of a kill, in seconds. That of a forked driver counts from its start; that of one
    with a Ray from its first command, since Ray takes longer to start than anything after it.
    """
    draw = random.Random(seed)
    rounds, hits, in_jobs, no_starts = [], 0, 0, 0
    began = time.monotonic()
    while hits < kills and time.monotonic() < end:
        with tempfile.TemporaryDirectory(prefix="sweep-kills-") as name:
            bench = Bench(Path(name))
            bench.write(MODELS, targets=("tensorrt-rtx",))
            snapshots: list[Snapshot] = []
            rays: set[str] = set()
            status: int | None = None
            while status != 0 and hits < kills and time.monotonic() < end:
                before = log_size(bench)
                begun = partial(log_grew, bench, -1 if forked else before)
                status = kill_later(start(bench), draw.uniform(0.0, longest), begun)
                if status is None:
                    hits += 1
                    in_jobs += log_grew(bench, before)
                    snapshots.append(take_snapshot(bench))
                    rays |= ray_folders(bench)
                    print(f"{hits} kills, {len(snapshots[-1].results)} of {JOBS} results", flush=True)
                elif status:
                    no_starts += require_no_start(bench, before, no_starts)
            before = log_size(bench)
            while os.waitpid(start(bench), 0)[1]:
                no_starts += require_no_start(bench, before, no_starts)
            lost = sum(Path(folder).exists() for folder in rays - ray_folders(bench))
            rounds.append({"kills": len(snapshots), **audit(bench, snapshots), "folders_lost": lost})
            print(f"{hits} kills, round {len(rounds)}: {rounds[-1]}", flush=True)
        took = round(time.monotonic() - began)
        yield {"kills": hits, "kills_while_jobs_ran": in_jobs, "ray_did_not_start": no_starts, "seconds": took,
               "rounds": rounds}  # fmt: skip


def require_no_start(bench: Bench, before: int, no_starts: int) -> int:
    """1 for a driver that failed without a command begun: on a busy machine Ray does not start in its own time."""
    assert not log_grew(bench, before), "a driver failed while jobs ran"
    assert no_starts < MOST_NO_STARTS, "Ray does not start here"
    return 1


def verdict(part: dict[str, object]) -> bool:
    """True when every round ended with all results, each made once."""
    return all(
        r["results_in_store"] == r["done_in_ledger"] == JOBS
        and not r["started_after_it_was_published"]
        and not r["published_twice"]
        and not r["half_written_results"]
        and not r["folders_lost"]
        for r in part["rounds"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--ray", type=int, default=20, help="how many of them hit `trtconv sweep` with its own Ray")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--minutes", type=float, default=float("inf"), help="make no kill after so many")
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    facts = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "jobs": JOBS,
        "seed": arguments.seed,
        "command": shlex.join(["python", "-m", "benchmarks", "sweep.kills", *sys.argv[1:]]),
    }
    record = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    parts = {
        "forked": (arguments.kills - arguments.ray, start_forked, 4.0, FORKED_S),
        "ray": (arguments.ray, start_command, 20.0, RAY_S),
    }
    good = True
    for name, (kills, start, longest, seconds) in parts.items():
        os.environ["QUICK_SECONDS"] = str(seconds)
        earlier = record.get(name, [])
        for part in run_rounds(kills, start, longest, arguments.seed, name == "forked", end):
            good = verdict(part)
            load = f"{os.getloadavg()[2]:.1f} on {os.cpu_count()} cores"
            run = {**facts, "command_s": seconds, "load_average": load, "nothing_lost_nothing_twice": good, **part}
            record[name] = [*earlier, run]
            write_result(arguments.output, record)
            if not good:
                sys.exit("something was lost or done twice; see the result")


if __name__ == "__main__":
    main()
