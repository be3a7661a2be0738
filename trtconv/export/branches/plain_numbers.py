"""Sizes that a recorded run takes for plain numbers: `math.log2(x.shape[1])` is 6.64 in the file, at every size.

In a recording a size is a tensor that knows where it comes from, until Python makes a float of it. Where the number
reaches an output, the comparison at other sizes shows it; where it only meets a value in a comparison, that may not.
"""

from __future__ import annotations

import linecache
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from trtconv.core.text.listing import list_first
from trtconv.export.module.user_code import Frame, format_frame, innermost_user_frame

LEAVING = ("__float__", "item", "tolist")
MOST_SHOWN = 3


@contextmanager
def plain_numbers() -> Iterator[dict[Frame, float]]:
    """The user's lines at which a float was made of a tensor while recording, each with the first number."""
    import torch
    from torch.overrides import TorchFunctionMode

    lines: dict[Frame, float] = {}

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            result = func(*args, **(kwargs or {}))
            if getattr(func, "__name__", "") in LEAVING and torch.jit.is_tracing() and isinstance(result, (int, float)):
                frame = innermost_user_frame(_frames())
                if frame is not None:
                    lines.setdefault(frame, float(result))
            return result

    with Watching():
        yield lines


def _frames() -> list[Frame]:
    """The frames of this call, outermost first."""
    frame = sys._getframe(2)
    frames: list[Frame] = []
    while frame is not None:
        frames.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return frames[::-1]


def numbers_in_words(numbers: Mapping[Frame, float], sizes: tuple[tuple[str, int], ...], base: Path) -> str:
    """The note on a file that keeps numbers of the sizes at which it was recorded."""
    lines = [
        f"`{linecache.getline(*frame).strip()}` at {format_frame(frame, base)} ({number:.6g})"
        for frame, number in numbers.items()
    ]
    recorded = ", ".join(f"{name}={size}" for name, size in sizes)
    return (
        f"the module makes a number of a size: {list_first(lines, MOST_SHOWN)}; the file keeps what it was at "
        f"{recorded}, and equals the module at the points compared"
    )
