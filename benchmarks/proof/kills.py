"""SIGKILL at random moments of convert, rewrite, build, package, check and the cache, over one folder and one cache.

    python -m benchmarks proof.kills [--kills 200] [--seed 1] [-o FILE.jsonl]

Two versions of a module (4 and 5 channels) are converted into one folder in turn, so that a set of which a part was
replaced is a mixed one. After each kill every file must be whole, a set that trtconv takes for consistent must be of
one version, and no process may go on. After a run that was not killed nothing temporary may be left. Half of the kills
come at any moment of the run, half while it writes. The program and the child in which it does the work are killed in
turn. Each command is forked from a process that has converted once, so that the kills hit the work and not imports.

Each kill is one line of JSON in FILE, written at once; a campaign that was stopped goes on behind its last line.
"""

from __future__ import annotations

import argparse
import functools
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.proof.kills_folder import (
    builders,
    children_of,
    leftovers,
    newest_change,
    runs,
    state_of_repository,
    state_of_set,
    write_engine,
)

NET = """
import torch
from torch import nn


def make_net(width=4):
    torch.manual_seed(width)
    return nn.Sequential(nn.Conv2d(3, width, 3, padding=1), nn.ReLU()).eval()
"""
# As often as they are chosen.
COMMANDS = (
    *("convert",) * 3,
    *("rewrite",) * 2,
    *("build",) * 2,
    *("package",) * 2,
    "check",
    "cache",
)
WIDTHS = (4, 5)
# A run that is not killed, which has to clean up, after so many kills.
WHOLE_EVERY = 10
_END_S = 30.0
_POLL_S = 0.001


class Campaign:
    """One folder, one cache and one repository; `tell` is given each event as plain data."""

    def __init__(self, root: Path, seed: int, tell: Callable[[dict[str, Any]], None]) -> None:
        self._root, self._out, self._repository = root, root / "out", root / "repository"
        self._seed, self._tell = seed, tell
        self._random = random.Random(seed)
        self._seconds: dict[str, float] = {}
        self._temporary = root / "tmp"
        (root / "net.py").write_text(NET)
        self._temporary.mkdir(mode=0o700)
        for width in WIDTHS:
            write_engine(root / f"engine{width}", width)
        os.environ |= {"TMPDIR": str(self._temporary), "TRTCONV_CACHE": str(root / "cache")}
        tempfile.tempdir = str(self._temporary)

    def run(self, first: int, kills: int) -> None:
        """Whole runs first, to know how long each takes; then the kills from number `first` on."""
        self._warm()
        for command in dict.fromkeys(COMMANDS):
            self._whole(command)
        number, attempt = first, 0
        while number < kills:
            # By its number, so that a campaign that goes on does not repeat itself.
            self._random = random.Random(f"{self._seed}-{number}-{attempt}")
            if not self._kill(self._random.choice(COMMANDS), number):
                attempt += 1
                continue
            number, attempt = number + 1, 0
            if number % WHOLE_EVERY == 0:
                for command in ("convert", "package", "cache"):
                    self._whole(command)
                for name in leftovers(self._out, self._repository, self._temporary):
                    self._tell({"failure": f"left over after whole runs: {name}"})

    def _warm(self) -> None:
        """One conversion in this process: what it imports and compiles is there for every command that is forked."""
        import torch
        from torch.onnx._internal.exporter._registration import ONNXRegistry

        from trtconv.cli.main import run

        torch.set_num_threads(1)
        ONNXRegistry.from_torchlib = functools.cache(ONNXRegistry.from_torchlib)
        try:
            run(self._words("convert", self._root / "warm"))
        except SystemExit as ending:
            if ending.code:
                raise

    def _words(self, command: str, folder: Path | None = None) -> list[str]:
        out, width = folder or self._out, self._random.choice(WIDTHS)
        return {
            "convert": ["convert", f"{self._root / 'net.py'}:make_net", "--arg", f"width={width}", "-o", str(out), "-q",
                        "--input", "x:float32[N,3,8,8]", "--dynamic", "N=1:1:2", "--backend", "tensorrt-rtx",
                        *(["--force"] if self._random.random() < 0.5 else [])],
            "rewrite": ["rewrite", str(out / "model.onnx"), "--target", "tensorrt-rtx", "-q"],
            "build": ["build", str(out / "model.trt.onnx"), "-o", str(out / "model.engine"), "--dynamic", "-q",
                      "--backend", "tensorrt-rtx", *(["--force"] if self._random.random() < 0.5 else [])],
            "package": ["package", str(self._root / f"engine{width}" / "net.engine"), "-o", str(self._repository)],
            "check": ["check", str(out / "model.trt.onnx"), "--json", str(out / "report.json"), "-q"],
            "cache": ["cache", self._random.choice(("verify", "prune", "ls"))],
        }[command]  # fmt: skip

    def _start(self, command: str) -> int:
        words = self._words(command)
        pid = os.fork()
        if pid:
            return pid
        # The child is the program, and nothing of the campaign.
        from trtconv.cli.main import main

        code = 1
        try:
            with open(os.devnull, "wb") as nowhere:
                for descriptor in (1, 2):
                    os.dup2(nowhere.fileno(), descriptor)
            sys.argv[1:] = words
            main()
        except SystemExit as ending:
            code = int(ending.code or 0)
        finally:
            os._exit(code)

    def _whole(self, command: str) -> None:
        started = time.monotonic()
        _, status = os.waitpid(self._start(command), 0)
        self._seconds[command] = time.monotonic() - started
        code = os.waitstatus_to_exitcode(status)
        self._tell({"whole": command, "code": code, "seconds": round(self._seconds[command], 2)})
        # The others may lawfully refuse what a killed convert left.
        if command in ("convert", "package", "cache") and code != 0:
            self._tell({"failure": f"a whole {command} ended with {code}"})

    def _kill(self, command: str, number: int) -> bool:
        """One kill; False when the command had ended before."""
        writes = self._random.random() < 0.5
        share, worker = self._random.random(), self._random.random() < 0.5
        folders = (self._repository,) if command == "package" else (self._out,)
        before = newest_change(*folders)
        started, pid = time.monotonic(), self._start(command)
        at = started + share * self._seconds[command] * (3 if writes else 1)
        changed = False
        while time.monotonic() < at:
            if writes and not changed and newest_change(*folders) != before:
                # From the first change on, within a third of what a whole run takes.
                changed, at = True, time.monotonic() + share * share * self._seconds[command] / 3
            if os.waitpid(pid, os.WNOHANG)[0]:
                return False
            time.sleep(_POLL_S)
        processes = children_of(pid)
        victim = processes[0] if worker and processes else pid
        os.kill(victim, signal.SIGKILL)
        seconds = time.monotonic() - started
        os.waitpid(pid, 0)
        self._look(command, number, seconds, "child" if victim != pid else "program", processes, changed)
        return True

    def _look(
        self, command: str, number: int, seconds: float, victim: str, processes: list[int], changed: bool
    ) -> None:
        """The folder as the next command would find it."""
        end = time.monotonic() + _END_S
        while (going := [p for p in processes if runs(p)] + builders(self._temporary)) and time.monotonic() < end:
            time.sleep(_POLL_S)
        state = state_of_repository(self._repository) if command == "package" else state_of_set(self._out)
        self._tell({
            "kill": number, "command": command, "victim": victim, "after": round(seconds, 3), "writing": changed,
            "state": state.replace(str(self._root), ""),
        })  # fmt: skip
        if state.startswith(("damaged", "unseen")):
            self._tell({"failure": f"after {command}: {state}"})
        if going:
            self._tell({"failure": f"after {command}: process {going[0]} goes on"})


def summary(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """The figures of a campaign out of its lines."""
    kills = [line for line in lines if "kill" in line]
    return {
        "kills": len(kills),
        "while it wrote": sum(line["writing"] for line in kills),
        "by command": dict(sorted(Counter(line["command"] for line in kills).items())),
        "by victim": dict(sorted(Counter(line["victim"] for line in kills).items())),
        "states": dict(sorted(Counter(line["state"].partition(":")[0] for line in kills).items())),
        "whole runs": sum("whole" in line for line in lines),
        "failures": [line["failure"] for line in lines if "failure" in line],
    }


def main() -> int:
    """Run or continue the campaign; prints its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("-o", "--output", type=Path, default=Path("benchmarks/results/kills.jsonl"))
    options = parser.parse_args()
    text = options.output.read_text() if options.output.exists() else ""
    lines = [json.loads(line) for line in text.splitlines()]
    with tempfile.TemporaryDirectory(prefix="kills-") as folder, open(options.output, "a") as stream:

        def tell(event: dict[str, Any]) -> None:
            lines.append(event)
            stream.write(json.dumps(event) + "\n")
            stream.flush()

        Campaign(Path(folder), options.seed, tell).run(sum("kill" in line for line in lines), options.kills)
    print(json.dumps(summary(lines), indent=1))
    return 1 if summary(lines)["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
