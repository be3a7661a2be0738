"""Limits of memory and time for a whole process, so that a hostile file ends in one error and not in a dead machine.

`TRTCONV_MEMORY_LIMIT` (`8GiB`; by default 95 % of what the machine or the container has) counts what the process itself
has in memory, not files that are mapped. `TRTCONV_TIME_LIMIT` (seconds; none by default, since a build may take hours)
counts wall time. A child of trtconv is held to the same limits.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.errors import InvalidRequestError, LimitError
from trtconv.core.sizes import format_bytes, parse_bytes
from trtconv.core.text.numbers import parse_number

MEMORY, TIME = "TRTCONV_MEMORY_LIMIT", "TRTCONV_TIME_LIMIT"
SHARE_OF_MACHINE = 0.95
_LEAST_BYTES = 1 << 28
_TICK_S = 0.1
_MOST_SECONDS = 1e7
_CGROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@dataclass(frozen=True)
class Limits:
    """Bytes of memory and seconds of wall time; None for none."""

    memory: int | None = None
    seconds: float | None = None


def read_limits(environment: Mapping[str, str] = os.environ) -> Limits:
    """The limits out of the environment. Raises InvalidRequestError for what is not a size or no number of seconds."""
    memory, seconds = environment.get(MEMORY, ""), environment.get(TIME, "")
    available = machine_bytes()
    return Limits(
        max(_memory(memory), _LEAST_BYTES) if memory else int(available * SHARE_OF_MACHINE) if available else None,
        parse_number(seconds, TIME, 0.1, _MOST_SECONDS) if seconds else None,
    )


def _memory(text: str) -> int:
    try:
        return parse_bytes(text)
    except InvalidRequestError as error:
        raise InvalidRequestError(f"{MEMORY}: {error.message}", hint=error.hint) from error


def machine_bytes() -> int | None:
    """The memory of the machine, or of the control group if that is smaller; None where nothing tells."""
    sizes = []
    with suppress(OSError, ValueError, IndexError):
        text = Path("/proc/meminfo").read_text()
        sizes.append(int(text.partition("MemTotal:")[2].split()[0]) * 1024)
    for name in _CGROUPS:
        with suppress(OSError, ValueError):
            sizes.append(int(Path(name).read_text()))
    return min(sizes, default=None)


def own_bytes() -> int:
    """What this process has in memory without mapped files, in bytes; 0 where there is no /proc."""
    return process_bytes("self")


def process_bytes(process: int | str) -> int:
    """The same of another process; 0 for one that has ended."""
    try:
        resident, shared = Path(f"/proc/{process}/statm").read_text().split()[1:3]
    except (OSError, ValueError):
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def limited(limits: Limits, end: Callable[[LimitError], None]) -> Iterator[None]:
    """Call `end` once, from a thread of its own, when the block goes beyond a limit."""
    if limits.memory is None and limits.seconds is None:
        yield
        return
    finished = threading.Event()
    started = time.monotonic()

    def watch() -> None:
        while not finished.wait(_TICK_S):
            error = excess(limits, time.monotonic() - started, own_bytes())
            if error is not None:
                end(error)
                return

    threading.Thread(target=watch, name="trtconv-limits", daemon=True).start()
    try:
        yield
    finally:
        finished.set()


def excess(limits: Limits, seconds: float, size: int) -> LimitError | None:
    """The error of a process that has run for `seconds` and has `size` bytes in memory; None within the limits."""
    if limits.seconds is not None and seconds > limits.seconds:
        return LimitError(
            f"the time limit of {limits.seconds:g} s is over",
            hint=f"{TIME}=SECONDS allows more; is the file to be trusted?",
        )
    if limits.memory is not None and size > limits.memory:
        return LimitError(
            f"more than {format_bytes(limits.memory)} of memory are needed",
            hint=f"make the ranges smaller; {MEMORY}=SIZE allows more; is the file to be trusted?",
        )
    return None
