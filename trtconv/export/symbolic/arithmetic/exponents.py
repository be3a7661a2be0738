"""Logarithms that are whole at whole powers, and numbers as a mantissa and an exponent."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from trtconv.export.symbolic.arithmetic.numerics import is_whole
from trtconv.export.symbolic.arithmetic.small_integers import is_narrow
from trtconv.export.symbolic.sizes import reduced_axes, without_axes

# Of a whole number over 1 a higher power leaves int64.
LARGEST_POWER = 62
# The powers that FP32 holds exactly; of two, the normal ones.
WHOLE_POWERS = {2: (-126, 127), 10: (0, 10)}


# aten's kernel of a power by a number (BinaryOpsKernel.cpp, pow_tensor_scalar_optimized_kernel).
_ROOTS = {0.5: "sqrt", -0.5: "rsqrt"}


def power(func: Any, x: Any, exponent: Any) -> Any:
    """A power of whole numbers, by squares: ONNX Runtime's Pow goes through doubles, which end at 2^53.

    Roots of floats are torch's own, which -0.0 and infinity below zero give other values than a power.
    """
    import torch

    if isinstance(exponent, float) and exponent in _ROOTS and isinstance(x, torch.Tensor):
        # Of halves aten computes powers.
        return getattr(torch, _ROOTS[exponent])(x) if x.dtype in (torch.float32, torch.float64) else NotImplemented
    if not is_whole(x) or not isinstance(exponent, int) or not 2 <= exponent <= LARGEST_POWER:
        return NotImplemented
    if is_narrow(x.dtype):
        return power(func, x.to(torch.int32), exponent).to(x.dtype)
    product, square = None, x
    while exponent:
        if exponent % 2:
            product = square if product is None else product * square
        exponent //= 2
        square = square * square if exponent else square
    return product


def square(func: Any, x: Any) -> Any:
    """The square of whole numbers, as a product."""
    return power(func, x, 2)


def log2(func: Any, x: Any) -> Any:
    """The binary logarithm; `log(x) / log(2)`, as the exporters write it, is 29.999998 at 2^30."""
    return _logarithm(x, 2)


def log10(func: Any, x: Any) -> Any:
    """The decimal logarithm; `log(x) / log(10)` is 2.9999998 at 1000."""
    return _logarithm(x, 10)


def _logarithm(x: Any, base: int) -> Any:
    """The quotient of logarithms, rounded where x is the power that it rounds to."""
    import torch

    if not isinstance(x, torch.Tensor) or x.dtype in (torch.float64, torch.bool) or x.dtype.is_complex:
        return NotImplemented
    number = x if x.dtype.is_floating_point else x.to(torch.float32)
    if number.dtype != torch.float32:
        return NotImplemented
    low, high = WHOLE_POWERS[base]
    quotient = torch.log(number) * (1.0 / math.log(base))
    # NaN, and the infinity of 0, have no place in a table.
    plain = torch.logical_and(quotient == quotient, quotient.abs() != math.inf)
    rounded = torch.floor(torch.where(plain, quotient, 0.0) + 0.5).clamp(low, high)
    powers = torch.tensor([float(base) ** k for k in range(low, high + 1)], device=x.device)
    return torch.where(powers[(rounded - low).to(torch.int64)] == number, rounded, quotient)


class MantissaExponent(NamedTuple):
    """What torch returns from frexp."""

    mantissa: Any
    exponent: Any


def frexp(func: Any, x: Any) -> Any:
    """x as a mantissa of 0.5 to 1 times a power of two; zero, infinities and NaN have the exponent 0."""
    import torch

    if not x.dtype.is_floating_point:
        return NotImplemented
    plain = torch.logical_and(x == x, torch.logical_and(x != 0.0, x.abs() != math.inf))
    size = torch.where(plain, x.abs(), 0.5)
    exponent = torch.floor(torch.log2(size)) + 1.0
    mantissa = _scaled(size, -exponent)
    # The logarithm may round over a whole number.
    above, below = mantissa >= 1.0, mantissa < 0.5
    exponent = exponent + above.to(x.dtype) - below.to(x.dtype)
    mantissa = torch.where(above, mantissa * 0.5, torch.where(below, mantissa * 2.0, mantissa))
    signed = torch.where(x < 0.0, -mantissa, mantissa)
    return MantissaExponent(torch.where(plain, signed, x), torch.where(plain, exponent, 0.0).to(torch.int32))


def ldexp(func: Any, x: Any, other: Any) -> Any:
    """x times two to the power of `other`."""
    return _scaled(x, other.to(x.dtype)) if x.dtype.is_floating_point else NotImplemented


def _scaled(x: Any, exponent: Any) -> Any:
    """x times 2^exponent, in two steps: 2^130 is no float, and 1e-30 times it is one."""
    import torch

    half = torch.floor(exponent * 0.5)
    return x * torch.pow(2.0, half) * torch.pow(2.0, exponent - half)


def logsumexp(func: Any, x: Any, dim: Any, keepdim: bool = False) -> Any:
    """log(sum(exp(x))) with the largest element taken off first, as in torch.

    ONNX Runtime's ReduceLogSumExp gives -inf for a row that starts with -inf and goes on far below zero.
    """
    import torch

    if not x.dtype.is_floating_point:
        return NotImplemented
    axes = reduced_axes(x, dim)
    largest = x.amax(axes, keepdim=True)
    largest = torch.where(largest.abs() == torch.inf, torch.zeros_like(largest), largest)
    total = (x - largest).exp().sum(axes, keepdim=True).log() + largest
    return total if keepdim else without_axes(total, axes)
