"""Finding the line of the module at which the way through it depends on the size."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, format_frame, format_path, is_library

LONGEST = 500_000
Step = tuple[str, int, int]


@dataclass(frozen=True)
class Fork:
    """The line after which two runs go different ways, and where each goes next (None: it returns)."""

    line: Frame
    here: Frame | None
    there: Frame | None

    def describe(self, here: str, there: str, base: Path) -> str:
        """A sentence for an error; `here` and `there` are the sizes of the two runs."""
        text = linecache.getline(*self.line).strip()
        at = f"{format_path(self.line[0], base)}:{self.line[1]}"
        if self.here and self.there and self.here == self.there == self.line:
            return f"`{text}` at {at} goes one way at {here} and another at {there}"
        return f"`{text}` at {at} goes {_direction(self.here)} at {here} and {_direction(self.there)} at {there}"


def _direction(frame: Frame | None) -> str:
    if frame is None:
        return "back"
    # What handles an error has instructions without a line.
    return f"to line {frame[1]}" if frame[1] else "elsewhere"


def find_fork(runner: ModuleRunner, here: Mapping[str, Any], there: Mapping[str, Any]) -> Fork | None:
    """Run the module with two sets of inputs and find the first user line after which they part; None if never."""
    first, second = _lines(runner, here), _lines(runner, there)
    for index, (a, b) in enumerate(zip(first, second, strict=False)):
        if a != b:
            return Fork(first[index - 1][:2], a[:2], b[:2]) if index else None
    if len(first) == len(second):
        return None
    short = min(len(first), len(second))
    after = [steps[short][:2] if len(steps) > short else None for steps in (first, second)]
    return Fork(first[short - 1][:2], after[0], after[1]) if short else None


def _lines(runner: ModuleRunner, inputs: Mapping[str, Any]) -> Sequence[Step]:
    """The user's instructions in the order in which a run comes to them: file, line, and place in the line.

    Instructions and not lines, for `a if x.shape[0] > 1 else b` is one line.
    """
    steps: list[Step] = []

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if event == "call" and is_library(frame.f_code.co_filename):
            return None
        frame.f_trace_opcodes = True
        if event == "opcode" and len(steps) < LONGEST:
            steps.append((frame.f_code.co_filename, frame.f_lineno, frame.f_lasti))
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        with runner.caches.emptied():
            runner(inputs)
    except TrtconvError:
        pass
    finally:
        sys.settrace(before)
    return steps


def locate_fork(fork: Fork, base: Path) -> str:
    """`file.py:12` of the line that decides."""
    return format_frame(fork.line, base)
