"""The module in FP64, and with its weights moved by a rounding: what its own rounding is measured by."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from torch import nn

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]

# A copy in FP64 takes twice the weights' memory, which a model of many gigabytes cannot afford.
LARGEST_COPY = 1 << 30


def weight_bytes(module: nn.Module) -> int:
    """The bytes of the module's parameters."""
    return sum(p.numel() * p.element_size() for p in module.parameters())


def exact_twin(runner: ModuleRunner) -> ModuleRunner | None:
    """The module in FP64; None when it is too large to copy or cannot be copied."""
    copied = _copied(runner.module)
    if copied is None:
        return None
    try:
        return runner.with_module(copied.double())
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


def perturbed_twin(runner: ModuleRunner, seed: int) -> ModuleRunner | None:
    """The module with each weight moved by at most one unit in its last place; None as for `exact_twin`."""
    import torch

    copied = _copied(runner.module)
    if copied is None:
        return None
    generator = torch.Generator().manual_seed(seed)
    try:
        with torch.no_grad():
            for parameter in copied.parameters():
                if parameter.is_floating_point():
                    noise = torch.rand(parameter.shape, generator=generator).mul_(2).sub_(1).to(parameter.dtype)
                    parameter.add_(parameter * noise * torch.finfo(parameter.dtype).eps)
        return runner.with_module(copied)
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


def _copied(module: nn.Module) -> nn.Module | None:
    if weight_bytes(module) > LARGEST_COPY:
        return None
    try:
        return copy.deepcopy(module)
    except (RuntimeError, TypeError, NotImplementedError, AttributeError):
        return None


@contextmanager
def denormals_flushed() -> Iterator[None]:
    """Denormal numbers count as zero in torch during the block."""
    import torch

    torch.set_flush_denormal(True)
    try:
        yield
    finally:
        torch.set_flush_denormal(False)
