"""The error function's complement and what is made of it, to the last digits also in the tails.

The exporters write erfc as `1 - erf(x)`, which is 0 from x = 4 on, where erfc is 1.5e-8, and its logarithm infinite.
"""

from __future__ import annotations

import math
from typing import Any

# Press et al., "Numerical Recipes" (2nd edition, 6.2): erfc(x) = t exp(-x * x + P(t)) with t = 1 / (1 + x / 2), for
# x >= 0, to 1.2e-7 of its value. Highest power first.
TAIL_OF_ERFC = (0.17087277, -0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196,
                1.00002368, -1.26551223)  # fmt: skip
# From here on erfc is taken from its tail; up to here `1 - erf(x)` loses less than a digit.
TAIL_FROM = 0.5
# exp(-x * x) is 0 in FP32 from 10.2 on; beyond, a square would overflow.
FARTHEST = 30.0


def erfc(func: Any, x: Any) -> Any:
    """1 - erf(x), relative error about 1e-6 down to the smallest normal number; FP32."""
    import torch

    if not _is_single(x):
        return NotImplemented
    argument = x.clamp(TAIL_FROM, FARTHEST)
    return torch.where(x > TAIL_FROM, _exp_of_square(argument) * _scaled_tail(argument), 1.0 - torch.erf(x))


def erfcx(func: Any, x: Any) -> Any:
    """exp(x * x) erfc(x); of large negative x infinite."""
    import torch

    if not _is_single(x):
        return NotImplemented
    near = x.clamp(max=TAIL_FROM)
    return torch.where(
        x > TAIL_FROM, _scaled_tail(x.clamp(min=TAIL_FROM)), torch.exp(near * near) * (1.0 - torch.erf(near))
    )


def log_ndtr(func: Any, x: Any) -> Any:
    """The logarithm of the normal distribution, which is erfc(-x / sqrt(2)) / 2; below -1 without its value."""
    import torch

    from trtconv.export.symbolic.arithmetic.numerics import log1p

    if not _is_single(x):
        return NotImplemented
    argument = x * -math.sqrt(0.5)
    tail = argument.clamp(min=TAIL_FROM)
    below = torch.log(_scaled_tail(tail) * 0.5) - tail * tail
    return torch.where(x < -1.0, below, log1p(func, erfc(func, -argument) * -0.5))


def _scaled_tail(x: Any) -> Any:
    """exp(x * x) erfc(x) for x >= 0."""
    import torch

    t = 1.0 / (1.0 + 0.5 * x)
    total = torch.full_like(t, TAIL_OF_ERFC[0])
    for coefficient in TAIL_OF_ERFC[1:]:
        total = total * t + coefficient
    return t * torch.exp(total)


def _exp_of_square(x: Any) -> Any:
    """exp(-x * x) for x of 0 to 30, whose square would be rounded: the multiple of 1/16 below x has an exact one."""
    import torch

    coarse = torch.floor(x * 16.0) * 0.0625
    return torch.exp(-coarse * coarse) * torch.exp((coarse - x) * (coarse + x))


# Giles, "Approximating the erfinv function" (GPU Computing Gems, 2011), single precision: highest power first, in
# w - 2.5 for w = -log(1 - x * x) below 5, in sqrt(w) - 3 above.
CENTRE = (2.81022636e-08, 3.43273939e-07, -3.5233877e-06, -4.39150654e-06, 0.00021858087, -0.00125372503,
          -0.00417768164, 0.246640727, 1.50140941)  # fmt: skip
TAIL = (-0.000200214257, 0.000100950558, 0.00134934322, -0.00367342844, 0.00573950773, -0.0076224613,
        0.00943887047, 1.00167406, 2.83297682)  # fmt: skip


def erfinv(func: Any, x: Any) -> Any:
    """The inverse of erf for FP32; infinite at -1 and 1, NaN beyond."""
    import torch

    if x.dtype != torch.float32:
        return NotImplemented
    w = -torch.log((1.0 - x) * (1.0 + x))
    inside = torch.where(w < 5.0, w - 2.5, torch.sqrt(w.clamp(min=5.0)) - 3.0)
    sums = [torch.full_like(x, c) for c in (CENTRE[0], TAIL[0])]
    for centre, tail in zip(CENTRE[1:], TAIL[1:], strict=True):
        sums = [sums[0] * inside + centre, sums[1] * inside + tail]
    result = torch.where(w < 5.0, sums[0], sums[1]) * x
    return torch.where(x.abs() == 1.0, x * math.inf, result)


def _is_single(x: Any) -> bool:
    import torch

    return isinstance(x, torch.Tensor) and x.dtype == torch.float32
