"""The instructions of Python that the user's code executes in a run.

Python calls a trace function for every function that is entered, and torch enters thousands of its own for one operator
on symbolic sizes. Those are not watched: what an operator does is no step of the user's.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.branches.by_size.literals import numbers_in
from trtconv.export.module.user_code import is_library

# A file, the first line of a function in it, and the place of an instruction in that function.
Step = tuple[str, int, int]
# The package itself, whose clock a run with symbols looks at.
OWN = f"{Path(__file__).parents[3]}{os.sep}"


class StepsTaken(dict[Step, int]):
    """Instructions, each with its line; `numbers` are the whole numbers that stand in the functions that have them."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers: dict[int, None] = {}


@contextmanager
def steps_taken() -> Iterator[StepsTaken]:
    """The instructions of the user's code that are executed in the block."""
    steps = StepsTaken()
    libraries: dict[str, bool] = {}

    def enter(frame: Any, event: str, argument: Any) -> Any:
        file = frame.f_code.co_filename
        if file not in libraries:
            libraries[file] = is_library(file) or file.startswith(OWN)
        if libraries[file]:
            return None
        steps.numbers.update(dict.fromkeys(numbers_in(frame.f_code)))
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return step

    def step(frame: Any, event: str, argument: Any) -> Any:
        if event == "opcode":
            code = frame.f_code
            steps[code.co_filename, code.co_firstlineno, frame.f_lasti] = frame.f_lineno or code.co_firstlineno
        return step

    before = sys.gettrace()
    with _unwatched_operators():
        sys.settrace(enter)
        try:
            yield steps
        finally:
            sys.settrace(before)


def functions_run(runs: Iterable[Callable[[], object]]) -> frozenset[tuple[str, int]]:
    """The user's functions that are executed in these runs, by their file and first line; one that fails counts too."""
    functions: set[tuple[str, int]] = set()
    for run in runs:
        with steps_taken() as steps, suppress(TrtconvError):
            run()
        functions.update((file, first) for file, first, _ in steps)
    return frozenset(functions)


def _unwatched_operators() -> AbstractContextManager[Any]:
    """Without the trace function while torch works on an operator."""
    from torch.overrides import TorchFunctionMode

    class Unwatched(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            watching = sys.gettrace()
            sys.settrace(None)
            try:
                return func(*args, **(kwargs or {}))
            finally:
                sys.settrace(watching)

    unwatched: AbstractContextManager[Any] = Unwatched()
    return unwatched
