"""`(t == 9) is True`: comparisons of sizes are truth values at once in files that ask for those by identity.

torch's SymBool is neither True nor False, so that a run with symbols takes one side of such a question at every size
and records no condition.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, contextmanager
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

ASKED = re.compile(r"\bis\s+(?:not\s+)?(?:True|False)\b|\b(?:True|False)\s+is\b")
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
