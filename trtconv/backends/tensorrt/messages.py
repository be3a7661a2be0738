"""What TensorRT says: one logger per library for the life of the process, messages collected per piece of work.

TensorRT reports failures by None and a log line only, and keeps a pointer to the first logger it is given, so the
logger has to live as long as the process does.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

# Lines that come with every build or run, with or without a GPU, and say nothing about the model.
_NOISE = (
    "Thread context has not been set!",
    "[checkMacros.cpp::catchCudaError",
    "CUDA initialization failure",
    "CUDA lazy loading is not enabled",
)
_LEVELS = ("internal error", "error", "warning", "info", "verbose")
_KEPT = 2000
_RECENT = 100


@dataclass
class Messages:
    """What was logged while a piece of work ran, as (level, text) in order."""

    lines: list[tuple[str, str]] = field(default_factory=list)

    def add(self, level: str, text: str) -> None:
        """Keep a line, up to a bound, so that a verbose builder cannot fill the memory."""
        if len(self.lines) < _KEPT and not any(n in text for n in _NOISE):
            self.lines.append((level, text))

    def of(self, *levels: str) -> tuple[str, ...]:
        """The texts of these levels, each once, in order."""
        return tuple(dict.fromkeys(text for level, text in self.lines if level in levels))

    @property
    def errors(self) -> tuple[str, ...]:
        """Errors and internal errors."""
        return self.of("error", "internal error")

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings."""
        return self.of("warning")


class _Sinks:
    """The messages that listen now. Builders log from their own threads, hence the lock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._open: list[Messages] = []
        self._recent: deque[tuple[int, str, str]] = deque(maxlen=_RECENT)
        self.count = 0

    def add(self, level: str, text: str) -> None:
        with self._lock:
            self.count += 1
            self._recent.append((self.count, level, text))
            for messages in self._open:
                messages.add(level, text)

    def since(self, mark: int) -> Messages:
        recent = Messages()
        with self._lock:
            for number, level, text in self._recent:
                if number > mark:
                    recent.add(level, text)
        return recent

    @contextmanager
    def collect(self) -> Iterator[Messages]:
        messages = Messages()
        with self._lock:
            self._open.append(messages)
        try:
            yield messages
        finally:
            with self._lock:
                self._open = [m for m in self._open if m is not messages]


@functools.cache
def logger_of(trt: Any) -> Any:
    """The process-wide logger of a TensorRT module; it has a method `collect()` that yields `Messages`."""
    sinks = _Sinks()

    class CollectingLogger(trt.ILogger):  # type: ignore[misc]
        """Passes every line to whoever listens; never raises, since C++ calls it."""

        def __init__(self) -> None:
            trt.ILogger.__init__(self)

        def log(self, severity: Any, msg: str) -> None:
            level = _LEVELS[min(int(severity), len(_LEVELS) - 1)]
            if level != "verbose":
                sinks.add(level, str(msg).strip())

        def collect(self) -> Any:
            return sinks.collect()

        def mark(self) -> int:
            """A place in the log; with `since` the cheap way to see what one call said, should it fail."""
            return sinks.count

        def since(self, mark: int) -> Messages:
            """What was logged after a mark, as far as it is still remembered."""
            return sinks.since(mark)

    return CollectingLogger()
