"""The bits of a size as arithmetic: `h & 64`, `(h - 1) | 7`, `h ^ 1` with plain masks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

from trtconv.export.symbolic.arithmetic import size_steps


@contextmanager
def bits_of_sizes() -> Iterator[None]:
    """`(h - 1) | 7`, `h & 7` and `h.bit_length()` as arithmetic: torch.export fixes a size of which bits are asked."""
    import torch

    def masked(size: Any, mask: int) -> Any:
        """The bits of the size that a mask which is not negative has: of each run of them what is below its end."""
        total: Any = 0
        while mask:
            first = mask & -mask
            end = mask + first & ~mask
            total = total + (size % end if first == 1 else size % end // first * first)
            mask &= -end
        return total

    def both(size: Any, mask: Any) -> Any:
        if type(mask) is not int:
            return plain["__and__"](size, mask)
        if mask >= 0:
            return masked(size, mask)
        return size // -mask * -mask if not -mask & (-mask - 1) else size - masked(size, ~mask)

    def either(size: Any, mask: Any) -> Any:
        if type(mask) is not int:
            return plain["__or__"](size, mask)
        if mask >= 0 and not mask & (mask + 1):
            return size // (mask + 1) * (mask + 1) + mask
        return size + mask - both(size, mask)

    def differing(size: Any, mask: Any) -> Any:
        return size + mask - 2 * both(size, mask) if type(mask) is int else plain["__xor__"](size, mask)

    methods = {"and": both, "or": either, "xor": differing}
    plain = {name: getattr(torch.SymInt, name, _no_bits) for name in ("__and__", "__or__", "__xor__")}
    with ExitStack() as stack:
        size_steps.patch_methods_of_sizes(stack)
        for name, method in methods.items():
            for reflected in ("", "r"):
                patch = mock.patch.object(torch.SymInt, f"__{reflected}{name}__", method, create=True)
                stack.enter_context(patch)
        yield


def _no_bits(size: Any, mask: Any) -> Any:
    return NotImplemented
