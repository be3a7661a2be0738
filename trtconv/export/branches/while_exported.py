"""Modules that ask whether they are being exported, and then take another path.

transformers makes a mask for a model that has none while it is exported, since it may not look at the values; a model
that cannot add such a mask fails in an export, and in no run. So the question can be answered as in a run.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, is_library, is_machinery
from trtconv.export.symbolic.builtins import user_namespaces
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    from torch import nn

QUESTIONS = (
    ("torch.compiler", "is_exporting"),
    ("torch.compiler", "is_compiling"),
    ("torch.compiler", "is_dynamo_compiling"),
    ("torch.jit", "is_tracing"),
    ("torch.onnx", "is_in_onnx_export"),
)
_NAMED = re.compile("|".join(name for _, name in QUESTIONS))
# What another path is, beside another rounding.
FARTHEST = 1e-3


@contextmanager
def answered(answer: bool, *, own: bool = False) -> Iterator[list[Frame]]:
    """In the block, code outside torch that asks whether it is being exported gets this answer; gives its lines.

    `own`: the user's own code alone, and not that of installed packages.
    """
    import torch

    _let_dynamo_meet_the_questions()
    lines: list[Frame] = []
    traced_by_dynamo = torch.compiler.is_dynamo_compiling

    def answer_to(frame: FrameType, real: Callable[[], bool]) -> bool:
        if (is_library if own else is_machinery)(frame.f_code.co_filename):
            return real()
        lines.append((frame.f_code.co_filename, frame.f_lineno))
        return answer

    def answering(real: Callable[[], bool]) -> Callable[[], bool]:
        def ask() -> bool:
            if torch.jit.is_scripting():
                # What torch.jit.script compiles for a recording, which reads this branch alone.
                return real()
            else:  # noqa: RET505
                # A branch of torch.cond: dynamo has no frames of Python, and knows the real questions alone.
                return real() if traced_by_dynamo() else answer_to(sys._getframe(1), real)

        return ask

    with ExitStack() as stack:
        for module_name, name in QUESTIONS:
            owner = importlib.import_module(module_name)
            if hasattr(owner, name):
                stack.enter_context(mock.patch.object(owner, name, answering(getattr(owner, name))))
        yield lines


@cache
def _let_dynamo_meet_the_questions() -> None:
    """Trace one function that asks, so that dynamo has its tables of torch's own functions before one is replaced.

    It builds each table once in a process, from the attributes of that moment.
    """
    import torch

    def asks(x: torch.Tensor) -> torch.Tensor:
        return x + 1 if torch.compiler.is_dynamo_compiling() and torch.compiler.is_exporting() else x

    if torch._dynamo.is_dynamo_supported():
        torch.compile(asks, backend="eager")(torch.zeros(1))


def may_ask(module: nn.Module) -> bool:
    """True when a file of the user's names one of the questions."""
    files = [Path(space.get("__file__") or "") for space in user_namespaces(module)]
    return any(_NAMED.search(f.read_text(errors="replace")) for f in files if f.suffix == ".py" and f.is_file())


def asking_line(runner: ModuleRunner, sample: ReferenceSample) -> Frame | None:
    """The line that asks, of a module that raises or gives something else when the answer is yes; else None."""
    with answered(True) as lines:
        try:
            outputs = runner(sample.inputs)
        except TrtconvError:
            return lines[0] if lines else None
    differs = outputs.keys() != sample.outputs.keys() or any(_differs(v, outputs[n]) for n, v in sample.outputs.items())
    return lines[0] if lines and differs else None


def _differs(expected: Any, actual: Any) -> bool:
    import numpy as np

    if expected.shape != actual.shape:
        return True
    scale = float(np.abs(expected).max(initial=0.0, where=np.isfinite(expected)))
    return not np.allclose(actual, expected, rtol=FARTHEST, atol=FARTHEST * scale, equal_nan=True)
