"""Casts that share memory in a module and do not in its FP64 twin.

`x.to(torch.float32)` of an FP32 tensor is that tensor; in the twin it is of FP64, and the cast is a copy. Where the
module writes into one of the two, the twin is another function, and its distance is no rounding.
"""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.recording.aliases import memory_of, tensors_in


class SharedCastError(RuntimeError):
    """The twin writes into a copy that is the tensor itself in the module, or into what was copied."""


class SharedCasts:
    """The memory of such casts and of what they were made of, while it lives."""

    def __init__(self) -> None:
        self._memory: set[int] = set()

    def require_unwritten(self, func: Any, args: Any) -> None:
        """Raise SharedCastError where the operator writes into such memory."""
        schema = getattr(func, "_schema", None)
        if not self._memory or schema is None or not schema.is_mutable:
            return
        for argument, value in zip(schema.arguments, args, strict=False):
            if argument.alias_info is not None and argument.alias_info.is_write and self._memory & _memory_of(value):
                raise SharedCastError("what is cast to float32 is written in place")

    def note(self, func: Any, args: Any, kwargs: Any, result: Any) -> None:
        """Note a cast; forget the memory that a new tensor has taken over."""
        import torch

        schema = getattr(func, "_schema", None)
        if schema is None:
            return
        if not any(r.alias_info is not None for r in schema.returns):
            self._memory -= _memory_of(result)
        cast = func.overloadpacket.__name__ == "_to_copy" and kwargs.get("dtype") is torch.float32
        if cast and args[0].dtype is torch.float64:
            self._memory |= _memory_of(args[0]) | _memory_of(result)


def _memory_of(value: Any) -> set[int]:
    return {memory_of(tensor) for tensor in tensors_in((value,))} - {0}
