"""`make fuzz MINUTES=10`: every target in a child process with limits of time and memory; what is found is kept.

    python -m tests.fuzz.campaign --minutes 10 [--seed 1] [--json FILE] [TARGET ...]

A finding is written to `tests/fuzz/findings` in its smallest form, from where the tests read it. The exit code is 1
when there was one. A child that crashes, hangs in native code or takes over 4 GiB leaves the input that did it.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path
from typing import Any

from tests.fuzz.catalogue import TARGETS, by_name
from tests.fuzz.findings import _decode, _encode, write_finding
from tests.fuzz.target import BUSY, MOST_SECONDS, Target, run
from trtconv.core.limits import Limits, limited

MOST_BYTES = 4 << 30
_NATIVE_HANG_S = 2 * BUSY * MOST_SECONDS
_ROUND = 100


class Child:
    """Fuzzes one target in this process; the parent reads `state`."""

    def __init__(self, target: Target, state: Path) -> None:
        self._target, self._state = target, state
        self.count, self.accepted = 0, 0
        self._reported: set[str] = set()
        self._failing: tuple[Any, str] | None = None

    def fuzz(self, seconds: float, seed: int) -> None:
        """Rounds with other seeds until the time is over."""
        import hypothesis

        end, number = time.monotonic() + seconds, seed
        while time.monotonic() < end:
            settings = hypothesis.settings(
                max_examples=_ROUND,
                database=None,
                deadline=None,
                print_blob=False,
                phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
                suppress_health_check=list(hypothesis.HealthCheck),
            )
            number += 1
            self._failing = None
            rounds = hypothesis.seed(number)(settings(hypothesis.given(self._target.inputs)(self._read_until(end))))
            with contextlib.suppress(BaseException):
                rounds()
            if self._failing is not None:
                value, error = self._failing
                self._reported.add(error.partition("\n")[0])
                print(f"{self._target.name}: {error}", flush=True)
                print("kept in", write_finding(self._target.name, value, error), flush=True)
        self._write({"count": self.count, "findings": sorted(self._reported)})

    def _read_until(self, end: float) -> Any:
        def read(value: Any) -> None:
            if time.monotonic() > end + 60:
                return
            self.count += 1
            self._write({"count": self.count, "input": _encode(value), "findings": sorted(self._reported)})
            try:
                with tempfile.TemporaryDirectory() as folder:
                    run(self._target, value, Path(folder))
            except BaseException as error:
                text = _signature(error)
                if text.partition("\n")[0] in self._reported:
                    return
                self._failing = (value, text)
                raise

        return read

    def _write(self, data: dict[str, Any]) -> None:
        part = self._state.with_suffix(".part")
        part.write_text(json.dumps(data))
        os.replace(part, self._state)

    def out_of_memory(self, _: Any) -> None:
        """Called by the limit: the input that is being read is in the state already."""
        os._exit(98)


def _signature(error: BaseException) -> str:
    """Type and line where it arose, by which findings are told apart; then its text."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if re.search("/(trtconv|fuzz)/", f.filename)]
    at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {at}\n{str(error)[:300]}"


def _watch(name: str, seconds: float, seed: int, folder: Path) -> dict[str, Any]:
    """Run children for one target until its time is over; a child that died is replaced."""
    state, total, findings = folder / f"{name}.json", 0, set()
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 1:
        state.unlink(missing_ok=True)
        seed += 10_000
        ending = _wait(_start(by_name(name), state, left, seed), state, time.monotonic() + left + 120)
        data = json.loads(state.read_text()) if state.exists() else {}
        total += data.get("count", 0)
        findings |= set(data.get("findings", ()))
        if ending:
            print(f"{name}: {ending}", flush=True)
            findings.add(ending)
            if "input" in data:
                print("kept in", write_finding(name, _decode(data["input"]), ending), flush=True)
    return {"inputs": total, "findings": sorted(findings), "seconds": round(seconds)}


def _start(target: Target, state: Path, seconds: float, seed: int) -> int:
    """The child for one target, forked: what it imports is there already."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        warnings.simplefilter("ignore")
        child = Child(target, state)
        with limited(Limits(MOST_BYTES), child.out_of_memory):
            child.fuzz(seconds, seed)
        code = 0
    finally:
        sys.stdout.flush()
        os._exit(code)


def _wait(child: int, state: Path, end: float) -> str:
    """How the child ended; empty when it did so by itself."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        time.sleep(0.2)
        age = time.time() - state.stat().st_mtime if state.exists() else 0
        if age > _NATIVE_HANG_S or time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return "hang in native code" if age > _NATIVE_HANG_S else ""
    code = os.waitstatus_to_exitcode(status)
    return "" if code == 0 else "over 4 GiB" if code == 98 else f"ended with {code}"


def main() -> int:
    """The campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    parser.add_argument("targets", nargs="*")
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    names = options.targets or [t.name for t in TARGETS]
    each = options.minutes * 60 / len(names)
    with tempfile.TemporaryDirectory() as folder:
        results: dict[str, dict[str, Any]] = {}
        for name in names:
            results[name] = result = _watch(name, each, options.seed, Path(folder))
            print(f"{name:<16} {result['inputs']:>8} inputs  {len(result['findings'])} findings", flush=True)
            if options.json:
                # After each, so that a campaign that is stopped leaves what it saw.
                inputs = sum(r["inputs"] for r in results.values())
                summary = {"minutes": options.minutes, "seed": options.seed, "inputs": inputs, "targets": results}
                options.json.write_text(json.dumps(summary, indent=1, sort_keys=True) + "\n")
    return 1 if any(r["findings"] for r in results.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
