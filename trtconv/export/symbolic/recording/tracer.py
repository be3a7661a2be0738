"""torch's tracer, stopped for a while: it records that sizes are read, and gives them as tensors."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def unrecorded() -> Iterator[None]:
    """Nothing is recorded for the time of the block; sizes are plain numbers."""
    import torch

    state = torch._C._get_tracing_state()
    torch._C._set_tracing_state(None)
    try:
        yield
    finally:
        torch._C._set_tracing_state(state)


def unrecorded_shape(tensor: Any) -> tuple[Any, ...]:
    """The shape as plain numbers in a recorded run; what torch.export has symbols for stays symbolic."""
    with unrecorded():
        return tuple(tensor.shape)
