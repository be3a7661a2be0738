"""SIGTERM, with which CI systems and containers end a command, ends it as Ctrl-C does: nothing stays half written.

A command that goes beyond its limits of memory and time sends itself the same signal.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from trtconv.cli.ending import note_end
from trtconv.core.errors import LimitError
from trtconv.core.limits import limited, read_limits

# Seconds from SIGTERM to the end where the main thread does not hear it; Docker and Slurm send SIGKILL after 10 and 30.
GRACE_S = 8.0
INTERRUPTED = "interrupted; nothing was left half written"

# What a native call gets to return by itself once a limit is exceeded; memory may be short by then.
LIMIT_GRACE_S = 2.0


@contextmanager
def within_limits(show: Callable[[LimitError], int]) -> Iterator[list[LimitError]]:
    """Inside `terminable`: a block beyond its limits ends as after SIGTERM, and the list holds the reason.

    Where the main thread does not hear it, the reason is given to `show` and the process ends with its exit code.
    Raises InvalidRequestError for limits that cannot be read.
    """
    exceeded: list[LimitError] = []

    def end(error: LimitError) -> None:
        exceeded.append(error)
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(LIMIT_GRACE_S)
        if not left.is_set():
            code = show(error)
            note_end()
            os._exit(code)

    left = threading.Event()
    with limited(read_limits(), end):
        try:
            yield exceeded
        finally:
            left.set()


@contextmanager
def terminable(grace: float = GRACE_S) -> Iterator[list[int]]:
    """SIGTERM takes the way of SIGINT, which a build in progress understands too; the list then holds its number.

    Python's handlers wait for a native call in the main thread, and an exception for the threads of the block that it
    leaves. Where neither ends within `grace` seconds the process does, with 143; outputs are renamed, so none is half.
    """
    received: list[int] = []

    def end(number: int, _frame: Any) -> None:
        received.append(number)
        if len(received) > 1:
            return  # it ends already: both a group and our parent may send the signal
        # A job in the background of a script has SIGINT ignored.
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield received
        return
    before = signal.signal(signal.SIGTERM, end)
    read, write = os.pipe()
    os.set_blocking(write, False)
    # The number is written by the C handler, at once, whatever the main thread does.
    woken = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_end_later, args=(read, grace), name="trtconv-termination", daemon=True).start()
    try:
        yield received
    finally:
        signal.set_wakeup_fd(woken)
        os.close(write)
        signal.signal(signal.SIGTERM, before)


def _end_later(read: int, grace: float) -> None:
    """End the process `grace` seconds after SIGTERM came through `read`; return when its other end is closed."""
    numbers = b""
    while signal.SIGTERM not in numbers:
        numbers = os.read(read, 64)
        if not numbers:
            os.close(read)
            return
    # Not at the end of the block: leaving Python may wait for a thread as well.
    time.sleep(grace)
    with suppress(OSError):
        os.write(2, b"terminated; nothing was left half written\n")
    note_end()
    os._exit(128 + signal.SIGTERM)
