"""A function of another package that runs other code for a while."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def swapped(owner: str, name: str, function: Callable[..., Any]) -> Iterator[None]:
    """Let a function of the module `owner`, where that is imported, run the code of another in the block.

    That code has the globals of `owner`. Modules that imported the name hold the function itself, so that its code
    changes and not what the name stands for.
    """
    replaced = getattr(sys.modules.get(owner), name, None)
    if replaced is None:
        yield
        return
    own = replaced.__code__, replaced.__defaults__
    replaced.__code__, replaced.__defaults__ = function.__code__, function.__defaults__
    try:
        yield
    finally:
        replaced.__code__, replaced.__defaults__ = own
