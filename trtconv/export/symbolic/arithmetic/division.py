"""Division rounded down, as torch does it: of floats by the exact remainder.

`floor(x / y)` is one too high where the quotient rounds up to a whole number: 0.7 / 0.1 is 7 in FP32, and 0.7 is less
than seven times 0.1 there (c10/util/BFloat16-math.h and aten's div_floor_kernel have the formula).
"""

from __future__ import annotations

from typing import Any

from trtconv.export.symbolic.sizes import is_symbolic


def floor_divide(func: Any, x: Any, other: Any, *, out: Any = None) -> Any:
    """x // other. Integers are traced as they are."""
    return _floored(x, other) if out is None and _of_floats(x, other) else NotImplemented


def floor_divide_in_place(func: Any, x: Any, other: Any) -> Any:
    """x //= other."""
    return x.copy_(_floored(x, other)) if x.dtype.is_floating_point and _of_floats(x, other) else NotImplemented


def reversed_floor_divide(func: Any, x: Any, other: Any) -> Any:
    """other // x, for a number `other`."""
    return _floored(other, x) if _of_floats(x, other) else NotImplemented


def divide(func: Any, x: Any, other: Any, *, rounding_mode: str | None = None, out: Any = None) -> Any:
    """torch.div; ONNX's is another thing of floats rounded down, and the exporters divide integers as FP32."""
    import torch

    if rounding_mode is None or out is not None:
        return NotImplemented
    if _of_integers(x, other):
        return _cut_off(x, other) if rounding_mode == "trunc" else torch.floor_divide(x, other)
    if rounding_mode == "trunc":
        return truncated(torch.trunc, torch.div(x, other)) if _of_floats(x, other) else NotImplemented
    return _floored(x, other) if _of_floats(x, other) else NotImplemented


def divide_in_place(func: Any, x: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """x.div_(other, rounding_mode="floor")."""
    if rounding_mode == "floor":
        return floor_divide_in_place(func, x, other)
    quotient = divide(func, x, other, rounding_mode=rounding_mode) if rounding_mode == "trunc" else NotImplemented
    return quotient if quotient is NotImplemented else x.copy_(quotient)


def _of_integers(x: Any, other: Any) -> bool:
    import torch

    operands = [v for v in (x, other) if isinstance(v, torch.Tensor)]
    whole = all(isinstance(v, (torch.Tensor, int, torch.SymInt)) and not isinstance(v, bool) for v in (x, other))
    return (
        whole
        and bool(operands)
        and not any(v.dtype.is_floating_point or v.dtype.is_complex or v.dtype == torch.bool for v in operands)
    )


def _cut_off(x: Any, other: Any) -> Any:
    """The quotient of integers without its fraction: rounded down, one more where that lost a negative one's."""
    import torch

    whole = torch.floor_divide(x, other)
    lossy = torch.logical_and(whole < 0, whole * other != x)
    return whole + lossy.to(whole.dtype)


def _of_floats(x: Any, other: Any) -> bool:
    import torch

    operands = [v for v in (x, other) if isinstance(v, torch.Tensor)]
    numbers = [v for v in (x, other) if isinstance(v, (float, torch.SymFloat))]
    if not operands or any(v.dtype == torch.bool or v.dtype.is_complex for v in operands):
        return False
    return any(v.dtype.is_floating_point for v in operands) or bool(numbers)


def _floored(x: Any, other: Any) -> Any:
    """(x - fmod(x, y)) / y, one less where the remainder has the other sign than y; of y = 0 it is x / y."""
    import torch

    kind = torch.result_type(x, other)
    tensors = [v for v in (x, other) if isinstance(v, torch.Tensor)]
    x, y = (v.to(kind) if isinstance(v, torch.Tensor) else torch.full((), v, dtype=kind) for v in (x, other))
    x = x.to(tensors[0].device)
    rest = torch.fmod(x, y)
    whole = (x - rest) / y
    whole = torch.where(torch.logical_and(rest != 0, (y < 0) != (rest < 0)), whole - 1.0, whole)
    low = torch.floor(whole)
    # What is left is rounding, to either side of a whole number.
    nearest = torch.where(whole - low > 0.5, low + 1.0, low)
    # A zero has the sign of the quotient.
    nearest = torch.where(nearest == 0, x / y * 0.0, nearest)
    return torch.where(y == 0, x / y, nearest)


def whole_itself(func: Any, x: Any) -> Any:
    """What floor, ceil and trunc give of whole numbers: themselves; ONNX has these of floats alone."""
    import torch

    whole = isinstance(x, torch.Tensor) and not (x.dtype.is_floating_point or x.dtype.is_complex)
    return x.clone() if whole and x.dtype != torch.bool else NotImplemented


def truncated(func: Any, x: Any) -> Any:
    """trunc by rounding up: ONNX has a Sign of 0 for -0.0, and ONNX Runtime a Where that loses it."""
    import torch

    if not isinstance(x, torch.Tensor) or not x.dtype.is_floating_point:
        return whole_itself(func, x)
    above = torch.ceil(x)
    return above - (above > x.clamp(min=0.0)).to(x.dtype)


def remainder(func: Any, x: Any, other: Any) -> Any:
    """Of floats: the exact remainder, moved to the divisor's sign; `x - floor(x / y) * y` is off by y near whole.

    By a size: by a tensor of it, as the exporter takes numbers only.
    """
    import torch

    if not isinstance(x, torch.Tensor):
        return NotImplemented
    if not x.dtype.is_floating_point:
        of_tensor = isinstance(other, torch.Tensor)
        if not (other.dtype.is_floating_point if of_tensor else isinstance(other, (float, torch.SymFloat))):
            by_size = is_symbolic(other) and not of_tensor
            size = torch.full((), other, dtype=x.dtype, device=x.device) if by_size else None
            return NotImplemented if size is None else torch.remainder(x, size)
        x = x.to(torch.result_type(x, other) if of_tensor else torch.get_default_dtype())
    rest = torch.fmod(x, other)
    return torch.where(torch.logical_and(rest != 0, (rest < 0) != (torch.as_tensor(other) < 0)), rest + other, rest)
