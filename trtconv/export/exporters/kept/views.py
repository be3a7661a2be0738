"""Copies that are views at some sizes: `y.transpose(1, 2).reshape(n, -1)` is y itself at one step, and what is then
written into it is written into y.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.export.module.runner import ModuleRunner
from trtconv.export.module.user_code import Frame, calling_user_frame

# What gives its tensor itself, or a view of it, where no element has to move.
AT_TIMES_VIEWS = frozenset(
    ("reshape", "reshape_as", "contiguous", "flatten", "ravel", "to", "type", "type_as", "float", "half", "double",
     "int", "long", "bfloat16", "bool", "cpu", "as_tensor", "asarray", "sum_to_size")
)  # fmt: skip


def written_views(runner: ModuleRunner, inputs: Mapping[str, Any]) -> dict[Frame, bool]:
    """The lines whose result is written in place behind them, and whether that is a view of what it was made of.

    Of several results of a line, whether all are.
    """
    from torch.multiprocessing.reductions import StorageWeakRef
    from torch.overrides import TorchFunctionMode
    from torch.utils._pytree import tree_leaves

    # A weak reference keeps the storage's number, and not its memory.
    results: dict[int, list[tuple[Frame, bool]]] = {}
    storages: list[StorageWeakRef] = []
    written: dict[Frame, bool] = {}

    class Watching(TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            name, named = getattr(func, "__name__", ""), kwargs or {}
            source = _storage(args[0]) if name in AT_TIMES_VIEWS and args else None
            result = func(*args, **named)
            target = _storage(result) if source is not None else None
            if source is not None and target is not None:
                frame = calling_user_frame()
                if frame is not None:
                    storages.append(target)
                    results.setdefault(target.cdata, []).append((frame, source.cdata == target.cdata))
            elif _writes(name) or "out" in named:
                for tensor in tree_leaves((args[:1] if _writes(name) else (), named.get("out"))):
                    storage = _storage(tensor)
                    for frame, is_view in results.get(storage.cdata, ()) if storage is not None else ():
                        written[frame] = is_view and written.get(frame, True)
            return result

    with suppress(TrtconvError), runner.caches.emptied(), Watching():
        runner(inputs)
    return written


def _storage(tensor: Any) -> Any:
    """The memory of a tensor; None for what is none."""
    import torch
    from torch.multiprocessing.reductions import StorageWeakRef

    return StorageWeakRef(tensor.untyped_storage()) if type(tensor) is torch.Tensor else None


def _writes(name: str) -> bool:
    if name.startswith("__"):
        return name == "__setitem__" or (name.startswith("__i") and name not in ("__invert__", "__int__", "__index__"))
    return name.endswith("_")
