"""Modules that ask which code calls them: they compute one thing while they are exported and another elsewhere."""

from __future__ import annotations

import inspect
import linecache
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.errors import AccuracyError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, format_path, is_library

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# What these do is done for the line that calls them.
_READERS = (inspect.__file__, traceback.__file__)


def require_no_use_of_callers(runner: ModuleRunner, inputs: Mapping[str, Array]) -> None:
    """Run once; raise AccuracyError with the user's line when it looks at the frames that called it."""
    with _asking_lines() as lines:
        runner(inputs)
    if lines:
        path, line = lines[0]
        raise AccuracyError(
            f"forward asks which code calls it: `{linecache.getline(path, line).strip()}`; what it computes under "
            "trtconv need not be what it computes elsewhere",
            hint="take what it decides by as an argument of the constructor",
            where=f"{format_path(path, runner.base)}:{line}",
        )


@contextmanager
def _asking_lines() -> Iterator[list[Frame]]:
    """The lines of the user's code that read frames in the block, however they do: all ways end in sys._getframe."""
    real = sys._getframe
    lines: list[Frame] = []

    def watched(depth: int = 0) -> Any:
        frame = real(1)
        while frame.f_back is not None and frame.f_code.co_filename in _READERS:
            frame = frame.f_back
        if not is_library(frame.f_code.co_filename):
            lines.append((frame.f_code.co_filename, frame.f_lineno))
        return real(depth + 1)

    with mock.patch.object(sys, "_getframe", watched):
        yield lines
