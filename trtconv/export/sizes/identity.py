"""Sizes that are asked for by identity: `(t == 9) is True`, `t is 200`.

torch's SymBool is neither True nor False, so that a run with symbols takes one side of such a question at every size
and records no condition: comparisons are truth values at once in files that ask so. Which whole numbers are one object
is CPython's affair (those from -5 to 256 are): questions for those are told by their lines.
"""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import parse_file, quote_frame

ASKED = re.compile(r"\bis\s+(?:not\s+)?(?:True|False)\b|\b(?:True|False)\s+is\b")
# Lines that one note names.
MOST_NAMED = 3
COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__")


@contextmanager
def truths_by_identity(files: Collection[str]) -> Iterator[None]:
    """Comparisons of sizes in these files are decided, with a condition, where one of them asks `is True`."""
    import torch

    if not any(map(_asks, files)):
        yield
        return

    def decided(compare: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        def decide(own: Any, other: Any) -> Any:
            answer = compare(own, other)
            here = isinstance(answer, torch.SymBool) and sys._getframe(1).f_code.co_filename in files
            return bool(answer) if here else answer

        return decide

    with ExitStack() as stack:
        for kind in (torch.SymInt, torch.SymFloat):
            for name in COMPARISONS:
                stack.enter_context(mock.patch.object(kind, name, decided(getattr(kind, name))))
        yield


def _asks(file: str) -> bool:
    try:
        # A file that is edited in a session may ask from then on.
        return _asks_since(file, os.stat(file).st_mtime_ns)
    except OSError:
        return False


@cache
def _asks_since(file: str, modified: int) -> bool:
    return ASKED.search(Path(file).read_text(encoding="utf-8", errors="replace")) is not None


def numbers_by_identity(files: Iterable[str], base: Path) -> tuple[str, ...]:
    """A note on the lines of a module's files that ask whether numbers are one object."""
    frames = [(file, line) for file in sorted(files) for line in _lines_of_identity(file)]
    if not frames:
        return ()
    named = list_first([quote_frame(frame, base) for frame in frames], MOST_NAMED)
    return (
        f"the module asks whether numbers are one object: {named}; in CPython those from -5 to 256 are, and the file "
        "need not answer so: compare with ==",
    )


def _lines_of_identity(file: str) -> list[int]:
    tree = parse_file(file)
    if tree is None:
        return []
    compared = [node for node in ast.walk(tree) if isinstance(node, ast.Compare)]
    return [c.lineno for c in compared if any(_between_numbers(*pair) for pair in _identities(c))]


def _identities(compared: ast.Compare) -> Iterator[tuple[ast.expr, ast.expr]]:
    operands = [compared.left, *compared.comparators]
    for operator, left, right in zip(compared.ops, operands, operands[1:], strict=False):
        if isinstance(operator, (ast.Is, ast.IsNot)):
            yield left, right


def _between_numbers(left: ast.expr, right: ast.expr) -> bool:
    """True where one of the two is a number as written, and none a constant of which there is one only."""
    single = any(isinstance(v, ast.Constant) and type(v.value) not in (int, float) for v in (left, right))
    return not single and any(_is_number(v) for v in (left, right))


def _is_number(written: ast.expr) -> bool:
    signed = isinstance(written, ast.UnaryOp) and not isinstance(written.op, ast.Not)
    return signed or isinstance(written, (ast.BinOp, ast.Constant))
