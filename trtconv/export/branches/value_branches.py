"""Lines at which the module decides by values: a recorded run goes the way that these values took, and says nothing."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, innermost_user_frame, shown_path

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# What makes a Python bool of a tensor. In an ordinary run sizes are ints, so that only values come here.
DECIDING = ("__bool__", "equal", "allclose", "is_nonzero")
MOST_SHOWN = 3


def value_branches(runner: ModuleRunner, inputs: Mapping[str, Array]) -> tuple[Frame, ...]:
    """The user's lines at which a run asks a tensor for a bool, in the order of their first use."""
    from torch.overrides import TorchFunctionMode

    seen: dict[Frame, None] = {}

    class Watch(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if getattr(func, "__name__", "") in DECIDING:
                frame = innermost_user_frame(_frames())
                if frame is not None:
                    seen[frame] = None
            return func(*args, **(kwargs or {}))

    try:
        with Watch():
            runner(inputs)
    except TrtconvError:
        pass
    return tuple(seen)


def branches_in_words(branches: tuple[Frame, ...], base: Path) -> str:
    """A note for a file that holds one way only; empty without branches."""
    if not branches:
        return ""
    lines = [f"`{linecache.getline(*f).strip()}` at {shown_path(f[0], base)}:{f[1]}" for f in branches[:MOST_SHOWN]]
    more = f" and {len(branches) - MOST_SHOWN} more" if len(branches) > MOST_SHOWN else ""
    return (
        f"the module decides by values: {', '.join(lines)}{more}; the file goes the way that every sample point takes, "
        "whatever the values are"
    )


def _frames() -> list[Frame]:
    """The frames of this call, outermost first."""
    frame, found = sys._getframe(1), []
    while frame is not None:
        found.append((frame.f_code.co_filename, frame.f_lineno))
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]
