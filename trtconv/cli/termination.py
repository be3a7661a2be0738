"""SIGTERM, with which CI systems and containers end a command, ends it as Ctrl-C does: nothing stays half written."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def terminable() -> Iterator[list[int]]:
    """SIGTERM takes the way of SIGINT, which a build in progress understands too; the list then holds its number."""
    seen: list[int] = []

    def end(number: int, _frame: Any) -> None:
        seen.append(number)
        # A job in the background of a script has SIGINT ignored.
        if callable(signal.getsignal(signal.SIGINT)):
            signal.raise_signal(signal.SIGINT)
        else:
            raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield seen
        return
    before = signal.signal(signal.SIGTERM, end)
    try:
        yield seen
    finally:
        signal.signal(signal.SIGTERM, before)
