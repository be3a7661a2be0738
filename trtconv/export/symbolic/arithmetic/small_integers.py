"""Functions of whole numbers of 8 and 16 bits, of which ONNX has the wider types alone."""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import may_be_empty, reduced_axes


def is_narrow(dtype: Any) -> bool:
    """True for whole numbers of 8 or 16 bits."""
    import torch

    return dtype in (torch.int16, torch.int8, torch.uint8)


def any_or_all(func: Any, x: Any, *args: Any, **named: Any) -> Any:
    """`any` and `all` of numbers: torch.onnx counts those that are not 0 once they are cut to whole ones, as 0.3 is.

    Of uint8 torch gives uint8, and the exporters give booleans. What may be empty is counted: the largest of no
    numbers is the smallest of all, which is true.
    """
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype.is_complex:
        return NotImplemented
    is_empty_somewhere = any(map(may_be_empty, x.shape))
    if x.dtype == torch.bool and not is_empty_somewhere:
        return NotImplemented
    is_set = x if x.dtype == torch.bool else x != 0
    if is_empty_somewhere:
        result = _counted(func.__name__ == "all", is_set, *args, **named)
    else:
        result = func(is_set, *args, **named)
    return result.to(torch.uint8) if x.dtype == torch.uint8 else result


def _counted(of_all: bool, x: Any, dim: Any = None, keepdim: bool = False) -> Any:
    axes = reduced_axes(x, dim)
    held = (~x if of_all else x).sum(axes, keepdim=keepdim)
    return held == 0 if of_all else held > 0


def product(func: Any, x: Any, y: Any, *rest: Any, **named: Any) -> Any:
    """`matmul` and its like of 8 and 16 bits: the low bits of the products in 32."""
    import torch

    if rest or named or not all(isinstance(v, torch.Tensor) and is_narrow(v.dtype) for v in (x, y)):
        return NotImplemented
    return func(x.to(torch.int32), y.to(torch.int32)).to(x.dtype)


def triangle(func: Any, x: Any, *args: Any, **named: Any) -> Any:
    """`tril` and `triu` of whole numbers that ONNX Runtime's Trilu does not take, in int32."""
    import torch

    if not isinstance(x, torch.Tensor) or not is_narrow(x.dtype):
        return NotImplemented
    return func(x.to(torch.int32), *args, **named).to(x.dtype)
