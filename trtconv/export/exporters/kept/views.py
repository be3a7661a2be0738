"""Copies that are views at some sizes: `y.transpose(1, 2).reshape(n, -1)` is y itself at one step, and what is then
written into it is written into y.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, calling_frames, innermost_user_frame

# What gives its tensor itself, or a view of it, where no element has to move.
AT_TIMES_VIEWS = frozenset(
    ("reshape", "reshape_as", "contiguous", "flatten", "ravel", "to", "type", "type_as", "float", "half", "double",
     "int", "long", "bfloat16", "bool", "cpu", "as_tensor", "asarray", "swapaxes")
)  # fmt: skip


def written_views(runner: ModuleRunner, inputs: Mapping[str, Any]) -> dict[Frame, bool]:
    """The lines whose result is written in place behind them, and whether that is a view of what it was made of.

    Of several results of a line, whether all are.
    """
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves

    results: list[tuple[Frame, Any, bool]] = []
    written: dict[Frame, bool] = {}

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name = getattr(func, "__name__", "")
            result = func(*args, **(kwargs or {}))
            if name in AT_TIMES_VIEWS and args and _is_tensor(args[0]) and _is_tensor(result):
                frame = innermost_user_frame([frame for _, frame in calling_frames()][::-1])
                if frame is not None:
                    results.append((frame, result, _storage(args[0]) == _storage(result)))
            elif _writes(name):
                for tensor in filter(_is_tensor, tree_leaves((args[:1], (kwargs or {}).get("out")))):
                    for frame, other, is_view in results:
                        if _storage(other) == _storage(tensor):
                            written[frame] = is_view and written.get(frame, True)
            return result

    with suppress(TrtconvError), runner.caches.emptied(), Watching():
        runner(inputs)
    return written


def _writes(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in ("__invert__", "__int__", "__index__"))
    return name.endswith("_") or "out" in name


def _is_tensor(value: Any) -> bool:
    torch = sys.modules["torch"]
    return isinstance(value, torch.Tensor)


def _storage(tensor: Any) -> int:
    return int(tensor.untyped_storage().data_ptr())
