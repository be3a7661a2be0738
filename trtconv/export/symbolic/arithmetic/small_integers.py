"""Functions of whole numbers of 8 and 16 bits, of which ONNX has the wider types alone."""

from __future__ import annotations

from typing import Any


def is_narrow(dtype: Any) -> bool:
    """True for whole numbers of 8 or 16 bits."""
    import torch

    return dtype in (torch.int16, torch.int8, torch.uint8)


def any_or_all(func: Any, x: Any, *args: Any, **named: Any) -> Any:
    """`any` and `all` of numbers: torch.onnx counts those that are not 0 once they are cut to whole ones, as 0.3 is.

    Of uint8 torch gives uint8, and the exporters give booleans.
    """
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype == torch.bool or x.dtype.is_complex:
        return NotImplemented
    result = func(x != 0, *args, **named)
    return result.to(torch.uint8) if x.dtype == torch.uint8 else result


def product(func: Any, x: Any, y: Any, *rest: Any, **named: Any) -> Any:
    """`matmul` and its like of 8 and 16 bits: the low bits of the products in 32."""
    import torch

    if rest or named or not all(isinstance(v, torch.Tensor) and is_narrow(v.dtype) for v in (x, y)):
        return NotImplemented
    return func(x.to(torch.int32), y.to(torch.int32)).to(x.dtype)
