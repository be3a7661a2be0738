"""How tensors lie in memory, which torch.export asks of every tensor and no file holds.

`is_contiguous` of symbolic sizes compares strides, and each comparison that cannot be proved is a condition under which
the trace holds: a Swin was refused for sizes at which nothing is padded, since strides are equal there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

QUESTIONS = ("is_contiguous", "is_channels_last_contiguous_2d", "is_channels_last_contiguous_3d")


@contextmanager
def without_layout_guards() -> Iterator[None]:
    """Within, questions about a tensor's layout are answered as at the traced sizes, and are no conditions."""
    import torch._prims_common

    with ExitStack() as stack:
        for name in QUESTIONS:
            stack.enter_context(
                mock.patch.object(torch._prims_common, name, _unguarded(getattr(torch._prims_common, name)))
            )
        # Asked in C++, which goes past these names.
        stack.enter_context(mock.patch.object(torch.Tensor, "contiguous", _unguarded(torch.Tensor.contiguous)))
        # Of what a copy writes to, which torch asks of the strides of a slice.
        overlap = _unguarded(torch._debug_has_internal_overlap)
        stack.enter_context(mock.patch.object(torch, "_debug_has_internal_overlap", overlap))
        yield


def _unguarded(question: Callable[..., Any]) -> Callable[..., Any]:
    import torch

    def ask(tensor: Any, *args: Any, **named: Any) -> Any:
        env = next((s.node.shape_env for s in tensor.shape if isinstance(s, torch.SymInt)), None)
        if env is None:
            return question(tensor, *args, **named)
        with env.suppress_guards():
            return question(tensor, *args, **named)

    return ask
