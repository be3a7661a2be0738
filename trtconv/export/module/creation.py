"""Where the user's code created the parts of a module: the line of a layer whose forward is torch's own."""

from __future__ import annotations

import functools
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest import mock

from trtconv.export.module.user_code import Frame, format_frame, is_library, is_own

if TYPE_CHECKING:
    from torch import nn

# The attribute of a module with the file and line. It travels with copies.
_CREATED = "_trtconv_created"


@contextmanager
def noted_creations() -> Iterator[None]:
    """Modules that are created in the block remember the line of the user's code that did so."""
    from torch import nn

    create = nn.Module.__init__

    @functools.wraps(create)
    def noting(self: nn.Module, *args: Any, **kwargs: Any) -> None:
        create(self, *args, **kwargs)
        frame = _calling_line()
        if frame is not None:
            vars(self)[_CREATED] = frame

    with mock.patch.object(nn.Module, "__init__", noting):
        yield


def created_at(module: nn.Module, path: str, base: Path) -> str:
    """`net.py:5` for the submodule at a path, else for the innermost one around it that knows; else empty."""
    parts = path.split(".") if path else []
    for length in range(len(parts), -1, -1):
        try:
            part = module.get_submodule(".".join(parts[:length]))
        except AttributeError:
            continue
        if _CREATED in vars(part):
            return format_frame(vars(part)[_CREATED], base)
    return ""


def failed_at(error: BaseException, base: Path) -> str | None:
    """`net.py:5`: where the innermost module was created that was running when this was raised."""
    from torch import nn

    line, trace = None, error.__traceback__
    while trace is not None:
        running = trace.tb_frame.f_locals.get("self")
        if isinstance(running, nn.Module) and _CREATED in vars(running):
            line = format_frame(vars(running)[_CREATED], base)
        trace = trace.tb_next
    return line


def _calling_line() -> Frame | None:
    """The innermost line of the user's code; what called trtconv is none of the module's."""
    frame = sys._getframe(2)
    while frame is not None:
        file = frame.f_code.co_filename
        if is_own(file):
            return None
        if not is_library(file):
            return file, frame.f_lineno
        frame = frame.f_back  # type: ignore[assignment]
    return None
