"""Converting networks side by side, each in its own process, within limits of time and memory."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from networks.install import SITE, site_of
from trtconv.core.processors import thread_variables

Outcomes = dict[str, dict[str, Any]]
ROOT = Path(__file__).parents[1]
POLL_SECONDS = 0.5


def read_outcomes(path: Path) -> Outcomes:
    """The last outcome of each network in a JSONL file; a line that was cut off by a crash is left out."""
    outcomes: Outcomes = {}
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            outcome = json.loads(line)
        except json.JSONDecodeError:
            continue
        outcomes[outcome["network"]] = outcome
    return outcomes


def lay_over(outcomes: Outcomes, record: Path, names: Sequence[str]) -> Outcomes:
    """Lay outcomes over the committed ones, in the registry's order; those of networks that are gone go."""
    merged = read_outcomes(record) | outcomes
    ordered = {n: merged[n] for n in names if n in merged}
    temporary = record.with_name(f".{record.name}.tmp")
    temporary.write_text("".join(json.dumps(o) + "\n" for o in ordered.values()))
    temporary.replace(record)
    return ordered


def run_all(names: Sequence[str], arguments: argparse.Namespace) -> None:
    """Convert the networks and append each outcome to the results as it comes."""
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(arguments.jobs) as pool, arguments.results.open("a") as results:
        running = [pool.submit(run_one, n, arguments) for n in names]
        for finished, future in enumerate(as_completed(running), 1):
            outcome = future.result()
            results.write(json.dumps(outcome) + "\n")
            results.flush()
            print(f"{finished}/{len(names)} {line_of(outcome)}", flush=True)


def line_of(outcome: dict[str, Any]) -> str:
    """One line for the terminal."""
    seconds = sum(outcome["seconds"].values())
    return f"{outcome['status']:11} {seconds:6.1f} s  {outcome['network']}  {outcome['message'][:200]}"


def variables_of(name: str, site: Path = SITE, inherited: str = "") -> dict[str, str]:
    """The environment in which a network's package is found, and asks no server for anything."""
    path = os.pathsep.join(p for p in (str(ROOT), str(site_of(name.split("/")[0], site)), inherited) if p)
    return {
        "PYTHONPATH": path,
        "HF_HUB_OFFLINE": "1",
        "YOLO_VERBOSE": "False",
        "YOLO_OFFLINE": "True",
        "USE_TORCH": "1",
    }


def run_one(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """The outcome of one network: what its process wrote, or why it wrote nothing."""
    threads = str(max(1, (os.cpu_count() or 1) // arguments.jobs))
    inherited = os.environ.get("PYTHONPATH", "")
    environment = {**os.environ, **variables_of(name, arguments.site, inherited), "OMP_NUM_THREADS": threads}
    environment = {**thread_variables(environment), **environment}
    with tempfile.TemporaryDirectory(prefix="network-result-") as folder:
        result = Path(folder) / "outcome.json"
        with (Path(folder) / "log").open("wb") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", "networks.convert", name, str(result)],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            reason, seconds = watch(child, arguments.seconds, arguments.memory)
        if result.exists():
            outcome: dict[str, Any] = json.loads(result.read_text())
            return outcome
        status = "stopped" if reason else "crashed"
        tail = (Path(folder) / "log").read_text(errors="replace").strip().splitlines()[-1:]
        message = reason or " ".join([f"the process ended with code {child.returncode}", *tail])[:400]
        return {"network": name, "status": status, "message": message, "seconds": {"total": round(seconds, 1)}}


def watch(child: subprocess.Popen[bytes], seconds: float, mib: int) -> tuple[str, float]:
    """Wait for a process that leads its own group; stop the group at a limit. Returns the reason, and the seconds."""
    started = time.monotonic()
    while child.poll() is None:
        reason = ""
        if time.monotonic() - started > seconds:
            reason = f"not finished after {seconds:g} s"
        elif resident_mib(child.pid) > mib:
            reason = f"over {mib} MiB of memory"
        if reason:
            os.killpg(child.pid, signal.SIGKILL)
            child.wait()
            return reason, time.monotonic() - started
        time.sleep(POLL_SECONDS)
    return "", time.monotonic() - started


def resident_mib(pid: int) -> int:
    """The resident memory of a process in MiB; 0 where the system does not tell."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") // (1 << 20)
