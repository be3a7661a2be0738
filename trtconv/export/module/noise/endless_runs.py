"""A limit for runs of a module: `while x.abs().max() > 8: x = x / 2` never ends at an infinity."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from types import FrameType

SHORTEST, TIMES = 60.0, 50.0
"""Seconds that every run may take, and how many times as long as the longest one before."""
SHORTEST_AGAIN, TIMES_AGAIN = 5.0, 10.0
"""The same once a run has not ended: other points like it will not end either."""

RETRY = 0.1
"""Seconds after which a run that imports something is looked at again."""
IMPORTING = "<frozen importlib._bootstrap>"


class EndlessRun(BaseException):
    """A run took too long. No Exception, so that a module that catches its own errors does not swallow it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"not ended after {seconds:.0f} s")
        self.seconds = seconds


class RunLimit:
    """How long a run of one module may take, by the longest run of it so far. The first run has no limit.

    Only the main thread can be interrupted, and only where nobody else uses the timer; elsewhere nothing is limited.
    """

    def __init__(self) -> None:
        self.longest = 0.0
        self.exceeded = False

    @property
    def seconds(self) -> float:
        """Seconds that the next run may take; 0 for any time."""
        shortest, times = (SHORTEST_AGAIN, TIMES_AGAIN) if self.exceeded else (SHORTEST, TIMES)
        return max(shortest, times * self.longest) if self.longest else 0.0

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Raise EndlessRun inside the block once the run has taken too long."""
        started, seconds = time.monotonic(), self.seconds
        main = threading.current_thread() is threading.main_thread()
        limited = main and seconds and not signal.getitimer(signal.ITIMER_REAL)[0]
        with self._interrupted(seconds) if limited else nullcontext():
            yield
        self.longest = max(self.longest, time.monotonic() - started)

    @contextmanager
    def _interrupted(self, seconds: float) -> Iterator[None]:
        def interrupt(number: int, frame: FrameType | None) -> None:
            del number
            if _imports(frame):  # half a module would stay behind
                signal.setitimer(signal.ITIMER_REAL, RETRY)
                return
            self.exceeded = True
            raise EndlessRun(seconds)

        before = signal.signal(signal.SIGALRM, interrupt)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)


def _imports(frame: FrameType | None) -> bool:
    """Whether an import is under way in this frame or one around it."""
    while frame is not None:
        if frame.f_code.co_filename == IMPORTING:
            return True
        frame = frame.f_back
    return False
