"""The instructions of Python that the user's code executes in a run."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trtconv.export.module.user_code import is_library

# A file, the first line of a function in it, and the place of an instruction in that function.
Step = tuple[str, int, int]
# The package itself, whose clock a run with symbols looks at.
OWN = f"{Path(__file__).parents[3]}{os.sep}"


@contextmanager
def steps_taken() -> Iterator[dict[Step, int]]:
    """The instructions of the user's code that are executed in the block, each with its line."""
    steps: dict[Step, int] = {}
    libraries: dict[str, bool] = {}

    def enter(frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in libraries:
            libraries[file] = is_library(file) or file.startswith(OWN)
        if libraries[file]:
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    def step(frame: Any, event: str, argument: Any) -> Any:
        if event == "opcode":
            code = frame.f_code
            steps[code.co_filename, code.co_firstlineno, frame.f_lasti] = frame.f_lineno or code.co_firstlineno
        return step

    before = sys.gettrace()
    sys.settrace(enter)
    try:
        yield steps
    finally:
        sys.settrace(before)
