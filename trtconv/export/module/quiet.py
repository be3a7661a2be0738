"""Keeping Python warnings, torch's log lines and a module's own prints off the user's terminal."""

from __future__ import annotations

import io
import logging
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from unittest import mock

NOISY = ("torch", "onnxscript", "onnx_ir", "onnx", "onnx_diagnostic")


@dataclass(frozen=True)
class Noise:
    """What was logged meanwhile, each line once, in order."""

    lines: list[str] = field(default_factory=list)

    def add(self, text: str) -> None:
        """Keep the first line of `text` unless it was logged before."""
        line = next((part.strip() for part in text.splitlines() if part.strip()), "")
        if line and line not in self.lines:
            self.lines.append(line[:400])


# torch writes every guard, its stack and whole graphs into this one as JSON, for TORCH_TRACE, and asks whether it has a
# handler. A collector there would cost a tenth of a trace, and hear no warning.
STRUCTURED = "torch.__trace"


class _Collector(logging.Handler):
    def __init__(self, noise: Noise) -> None:
        super().__init__(logging.WARNING)
        self._noise = noise

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the message of a warning or an error."""
        self._noise.add(record.getMessage())


class _SysAside:
    """The module `sys` with another stderr, for the two places where torch prints whole graphs when it fails.

    The real stderr must stay as it is, since the progress line is drawn there meanwhile.
    """

    def __init__(self, stderr: io.StringIO) -> None:
        self.stderr = stderr

    def __getattr__(self, name: str) -> object:
        return getattr(sys, name)


def _loggers() -> list[logging.Logger]:
    names = [n for n in logging.root.manager.loggerDict if n.split(".")[0] in NOISY and n != STRUCTURED]
    return [logging.getLogger(n) for n in {*NOISY, *names}]


class _Printed(io.StringIO):
    """What is printed, also where the user's code closes sys.stdout."""

    def close(self) -> None:
        """Stay open: it is read in the end."""


@contextmanager
def collected_noise() -> Iterator[Noise]:
    """Collect warnings, log records of torch and ONNX packages, and what is printed on stdout.

    torch's loggers have handlers of their own that write to the stderr of import time, so the handlers are replaced
    for the time of the block. Standard output belongs to trtconv's results, hence prints of a module are kept apart.
    """
    from torch.export import _trace
    from torch.fx import graph_module

    noise, printed = Noise(), _Printed()
    collector = _Collector(noise)
    before = [(logger, logger.handlers[:], logger.propagate) for logger in _loggers()]
    for logger, _, _ in before:
        logger.handlers = [collector]
        logger.propagate = False
    try:
        aside = _SysAside(io.StringIO())
        with (
            mock.patch.object(_trace, "sys", aside),
            mock.patch.object(graph_module, "sys", aside),
            warnings.catch_warnings(record=True) as caught,
            redirect_stdout(printed),
        ):
            warnings.simplefilter("always")
            yield noise
    finally:
        for logger, handlers, propagate in before:
            logger.handlers, logger.propagate = handlers, propagate
        for warning in caught:
            if not issubclass(warning.category, (DeprecationWarning, FutureWarning, PendingDeprecationWarning)):
                noise.add(f"{warning.category.__name__}: {warning.message}")
        for line in printed.getvalue().splitlines()[:20]:
            noise.add(f"printed: {line}")
