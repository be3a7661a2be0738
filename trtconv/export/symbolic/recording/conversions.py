"""`self.to(dtype)` within forward: a module that is what it is to become stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any
from unittest import mock

if TYPE_CHECKING:
    import torch
    from torch import nn


@contextmanager
def settled_conversions() -> Iterator[None]:
    """Conversions of a module that change none of its tensors assign none, for the time of the block.

    torch gives each parameter its own data again, which no exporter follows.
    """
    import torch

    convert = torch.nn.Module._apply

    def settled(module: nn.Module, fn: Callable[[torch.Tensor], Any], recurse: bool = True) -> nn.Module:
        with torch.no_grad():
            tensors = chain(module.parameters(recurse), module.buffers(recurse))
            unchanged = all(fn(tensor) is tensor for tensor in tensors)
        return module if unchanged else convert(module, fn, recurse)

    with mock.patch.object(torch.nn.Module, "_apply", settled):
        yield
