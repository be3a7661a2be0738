"""Sweeps whose driver is killed with SIGKILL at random moments and resumed: is anything lost or done twice?

Each round is a sweep of 100 jobs (25 models: export, rewrite, check, build) of the stand-in in tests/sweep, which logs
each command that it begins; workers log each result that they published. A round ends with a run that nobody kills.
With `--ray N`, N kills hit `trtconv sweep` itself with a Ray of its own; the others a driver with forked workers, whose
start costs milliseconds instead of seconds, so that most kills come while jobs run.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
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
# How long a job of the stand-in takes, in seconds.
JOB_S = "0.05"


def start_forked(bench: Bench) -> int:
    """A driver in a forked process; returns its id."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            request = SweepRequest(bench.folder / "sweep.toml", bench.atlas, resume=True)
            result = run_sweep(request, Recorder(), open_pool=lambda: ForkPool(4, bench.log))
            code = 0 if all(v.state == "amber" for v in result.verdicts) else 1
        finally:
            os._exit(code)
    return pid


def start_command(bench: Bench) -> int:
    """`trtconv sweep` as a person starts it; returns its id."""
    words = ["sweep", str(bench.folder / "sweep.toml"), "-o", str(bench.atlas), "--resume", "-q", "--workers", "2"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen([sys.executable, "-m", "trtconv", *words], env=environment).pid


def kill_later(pid: int, seconds: float, begun: Callable[[], bool] = lambda: True) -> bool:
    """Kill a process so long after `begun`; False when it ended before, which then has to be with 0."""
    end = None
    while end is None or time.monotonic() < end:
        if end is None and begun():
            end = time.monotonic() + seconds
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            assert status == 0, f"a driver ended with {status}"
            return False
        time.sleep(0.002)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return True


def finished_jobs(bench: Bench) -> int:
    """How many jobs the ledger holds as done; a reader of its own, as after a crash."""
    with contextlib.closing(sqlite3.connect(bench.atlas / "ledger.db")) as db:
        return int(db.execute('SELECT COUNT(*) FROM jobs WHERE result LIKE \'%"outcome": "ok"%\'').fetchone()[0])


def audit(bench: Bench, workers_log: bool) -> dict[str, int]:
    """What a finished round shows: results, jobs done twice, work that a kill cost."""
    results = list((bench.atlas / "store" / "results").rglob("*.json"))
    starts, published, again = Counter(), Counter(), 0
    for line in bench.log.read_text().splitlines():
        word, _, job = line.partition(" ")
        if word == "start":
            starts[job] += 1
            again += published[job] > 0
        elif word == "published":
            published[job] += 1
    return {
        "results_in_store": len(results),
        "done_in_ledger": finished_jobs(bench),
        "started_after_it_was_published": again,
        "published_twice": sum(n > 1 for n in published.values()) if workers_log else -1,
        "commands_begun": sum(starts.values()),
        "commands_begun_again_after_a_kill": sum(starts.values()) - len(starts),
        "half_written_results": sum(p.stat().st_size == 0 for p in results),
    }


def log_size(bench: Bench) -> int:
    """Bytes of the log to which every command writes as it begins."""
    return bench.log.stat().st_size if bench.log.exists() else 0


def log_grew(bench: Bench, size: int) -> bool:
    """True when a command began since the log had this size."""
    return log_size(bench) > size


def run_rounds(kills: int, start, longest: float, seed: int, forked: bool) -> dict[str, object]:
    """Rounds until so many kills hit; `longest` is the latest moment of a kill, in seconds.

    That of a forked driver counts from its start; that of one with a Ray from its first command, since Ray takes
    longer to start than anything after it.
    """
    draw = random.Random(seed)
    rounds, hits, in_jobs = [], 0, 0
    began = time.monotonic()
    while hits < kills:
        with tempfile.TemporaryDirectory(prefix="sweep-kills-") as name:
            bench = Bench(Path(name))
            bench.write(MODELS, targets=("tensorrt-rtx",))
            hits_before, open_round = hits, True
            while open_round and hits < kills:
                before = log_size(bench)
                begun = partial(log_grew, bench, -1 if forked else before)
                open_round = kill_later(start(bench), draw.uniform(0.0, longest), begun)
                hits += open_round
                in_jobs += open_round and log_grew(bench, before)
            _, status = os.waitpid(start(bench), 0)
            assert status == 0, "the last run of a round failed"
            rounds.append({"kills": hits - hits_before, **audit(bench, forked)})
            print(f"{hits} kills, round {len(rounds)}: {rounds[-1]}", flush=True)
    took = round(time.monotonic() - began)
    return {"kills": hits, "kills_while_jobs_ran": in_jobs, "seconds": took, "rounds": rounds}


def verdict(part: dict[str, object]) -> bool:
    """True when every round ended with all results, each made once."""
    return all(
        r["results_in_store"] == r["done_in_ledger"] == JOBS
        and not r["started_after_it_was_published"]
        and r["published_twice"] <= 0
        and not r["half_written_results"]
        for r in part["rounds"]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--ray", type=int, default=20, help="how many of them hit `trtconv sweep` with its own Ray")
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("-o", "--output", type=Path, default=OUTPUT)
    arguments = parser.parse_args()
    os.environ["QUICK_SECONDS"] = JOB_S
    data: dict[str, object] = {
        "date": time.strftime("%Y-%m-%d"),
        "python": platform.python_version(),
        "jobs": JOBS,
        "seed": arguments.seed,
        "command": "python -m benchmarks sweep.kills " + " ".join(sys.argv[1:]),
    }
    parts = {
        "forked": (arguments.kills - arguments.ray, start_forked, 4.0, True),
        "ray": (arguments.ray, start_command, 20.0, False),
    }
    good = True
    for name, (kills, start, longest, forked) in parts.items():
        if kills > 0:
            part = run_rounds(kills, start, longest, arguments.seed, forked)
            data[name] = part
            good &= verdict(part)
            data["nothing_lost_nothing_twice"] = good
            write_result(arguments.output, data)
    if not good:
        sys.exit("something was lost or done twice; see the result")


if __name__ == "__main__":
    main()
