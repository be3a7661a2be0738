"""Checks of values, which no file has: `assert (x < 9).all()`, `if x.isnan().any(): raise`, `torch._check_tensor_all`.

What they ask is no decision of the module: one answer goes on, and the other raises. torch.export cannot follow it.
"""

from __future__ import annotations

import ast
from functools import lru_cache
from itertools import takewhile
from typing import Any

from trtconv.export.branches.caught_errors import is_caught
from trtconv.export.module.user_code import (
    PARSED_FILES,
    Frame,
    calling_frames,
    is_machinery,
    is_standard,
    is_tracing_root,
    parse_file,
)


def truth(func: Any, tensor: Any) -> Any:
    """The handler of Tensor.__bool__: in an assert and in an `if` that raises, the truth with which forward goes on."""
    frames = _frames_of_forward()
    inner = next((f for f in frames if not is_machinery(f[0]) and not is_standard(f[0])), None)
    tree = None if inner is None else parse_file(inner[0])
    if inner is None or tree is None:
        return NotImplemented
    answer = _going_on(tree).get(inner[1])
    return NotImplemented if answer is None or is_caught(frames) else answer


def asserted(func: Any, condition: Any, message: Any = "") -> Any:
    """The handler of torch._assert: nothing is recorded."""
    return NotImplemented if is_caught(_frames_of_forward()) else None


def all_true(func: Any, condition: Any) -> Any:
    """The handler of `_is_all_true`, which torch._check_tensor_all asks and calls `item` on."""
    import numpy as np

    return NotImplemented if is_caught(_frames_of_forward()) else np.True_


def _frames_of_forward() -> list[Frame]:
    """The frames between here and the call of the user's forward, innermost first."""
    return [*takewhile(lambda f: not is_tracing_root(f[0]), (frame for _, frame in calling_frames()))]


@lru_cache(maxsize=PARSED_FILES)
def _going_on(tree: ast.Module) -> dict[int, bool]:
    """By the lines of a file's checks, what each truth in them has to be for the module to go on."""
    answers: dict[int, bool] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            test, passes = node.test, True
        elif isinstance(node, ast.If) and not node.orelse and isinstance(node.body[-1], ast.Raise):
            test, passes = node.test, False
        else:
            continue
        while isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            test, passes = test.operand, not passes
        # Of `a and not b` each has its own.
        if not any(isinstance(part, ast.Not | ast.IfExp | ast.comprehension) for part in ast.walk(test)):
            answers |= dict.fromkeys(range(test.lineno, (test.end_lineno or test.lineno) + 1), passes)
    return answers
