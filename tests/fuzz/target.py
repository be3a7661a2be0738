"""What a fuzz target is, and what counts as a finding."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from trtconv.core.errors import TrtconvError

MOST_SECONDS = 20
# By how much wall time may exceed the processor's where other processes compute.
BUSY = 10


class Finding(AssertionError):
    """An input that ended in something else than an answer or one clear error."""


@dataclass(frozen=True)
class Target:
    """`read` takes an input and a folder of its own; it raises Finding for a hostile input that it accepts.

    An answer, or a TrtconvError that says something in one line, is good; any other exception, and any run of over
    MOST_SECONDS of the processor, is a finding. `allowed` are other errors that the door above turns into one message.
    """

    name: str
    inputs: st.SearchStrategy[Any]
    read: Callable[[Any, Path], object]
    allowed: tuple[type[Exception], ...] = ()


def run(target: Target, value: Any, folder: Path) -> None:
    """Read one input. Raises what is a finding."""
    try:
        with _within_time():
            target.read(value, folder)
    except TrtconvError as error:
        if not error.message.strip():
            raise Finding("an error without a message") from error
    except target.allowed:
        return


# What no reader may do for a file.
HOSTILE_EVENTS = ("os.system", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.fork", "socket.connect")
_LISTENERS: list[list[str]] = []


@contextmanager
def audited() -> Iterator[list[str]]:
    """The hostile events of the block. Audit hooks cannot be removed, so that there is one, and it asks a list."""
    if not _LISTENERS:
        _LISTENERS.append([])
        sys.addaudithook(lambda event, _: _LISTENERS[-1].append(event) if event in HOSTILE_EVENTS else None)
    _LISTENERS.append([])
    try:
        yield _LISTENERS[-1]
    finally:
        _LISTENERS.pop()


@contextmanager
def _within_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise Finding(f"took over {MOST_SECONDS} s")

    # By the processor's time, so that a busy machine finds nothing that an idle one does not; and one that only waits.
    before = {number: signal.signal(number, late) for number in (signal.SIGPROF, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    signal.alarm(BUSY * MOST_SECONDS)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
