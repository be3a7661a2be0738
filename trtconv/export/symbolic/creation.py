"""Tensors made of sizes."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic


def tensor(func: Any, data: Any, dtype: Any = None, device: Any = None) -> Any:
    """`torch.as_tensor([[h, w], [h // 2, w // 2]])` number by number: torch takes those that it was traced with."""
    import torch

    numbers = _numbers(data)
    if not isinstance(data, (list, tuple)) or any(isinstance(n, torch.Tensor) for n in numbers):
        return NotImplemented
    if not any(is_symbolic(n) for n in numbers):
        return NotImplemented
    if dtype is None:
        fractions = any(isinstance(n, (float, torch.SymFloat)) for n in numbers)
        dtype = torch.get_default_dtype() if fractions else torch.int64
    return _stacked(data, dtype, device)


def _stacked(data: Any, dtype: Any, device: Any) -> Any:
    import torch

    if isinstance(data, (list, tuple)):
        return torch.stack([_stacked(part, dtype, device) for part in data])
    return torch.full((), data, dtype=dtype, device=device)


def _numbers(data: Any) -> list[Any]:
    if isinstance(data, (list, tuple)):
        return [number for part in data for number in _numbers(part)]
    return [data]
