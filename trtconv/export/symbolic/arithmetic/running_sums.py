"""Running sums that are rounded once, as torch's are: on a CPU it adds up in FP64 and rounds each sum.

A sum in FP32 loses up to half a unit at every step: a phase of 500 steps is off by ten times what torch's is, and 1e8,
1, 1, 1, -1e8 ends in 0. Here each element is a whole number of units and a rest, and so is the rest (an error-free
split, as in Rump, Ogita and Oishi, "Accurate Floating-Point Summation", 2008). A unit is a power of two so large that
every sum of whole numbers is exact in FP32. What rests stays under the last place of the result: after k splits of T
elements it loses T^2 / 2^24 (T / 2^23)^(k - 1) of such a place at most, where a plain sum may lose T / 2 places.
"""

from __future__ import annotations

import math
from typing import Any

from trtconv.export.symbolic.arithmetic.small_integers import is_narrow
from trtconv.export.symbolic.sizes import is_selection, scalar

# Bits of the largest sum in units; of FP32's 24 one is for rounded elements and one for a rounded logarithm.
SUM_BITS = 22
# Up to this length one split leaves less than a quarter of a last place.
SHORT = 2048
LOWEST, HIGHEST = -126, 127  # exponents of normal numbers of FP32


def cumsum(func: Any, x: Any, dim: int, dtype: Any = None) -> Any:
    """Sums in FP32 as if rounded once; sums that stay in 8 or 16 bits, and wrap around there."""
    import torch

    if is_narrow(dtype):
        return func(x.to(dtype).to(torch.int32), dim).to(dtype)
    kind = dtype or x.dtype
    if kind in (torch.float16, torch.bfloat16):
        return func(x.to(torch.float32), dim).to(kind)
    if kind != torch.float32 or not x.dtype.is_floating_point or x.dim() == 0 or is_selection(x.shape[dim]):
        return NotImplemented
    x, length = x.to(torch.float32), x.shape[dim]
    if isinstance(length, int) and length == 0:
        return x.clone()
    finite = x.abs() < math.inf  # not NaN
    # Of no elements the largest is -inf in a file.
    largest = torch.where(finite, x.abs(), 0.0).amax(dim, keepdim=True).clamp(min=0.0)
    rests, parts, units = x, [], []
    for _ in range(1 if isinstance(length, int) and length <= SHORT else 2):
        unit = _unit(largest, length)
        whole = torch.round(rests / unit)
        rests = torch.where(finite, rests - whole * unit, 0.0)
        largest = unit * 0.5
        parts.append(whole)
        units.append(unit)
    sums = func(torch.stack([*parts, rests]), dim + 1 if dim >= 0 else dim).unbind(0)
    total = sums[-1]
    for unit, whole in zip(reversed(units), reversed(sums[:-1]), strict=True):
        total = whole * unit + total
    return total


def _unit(largest: Any, length: Any) -> Any:
    """The power of two of which no sum of so many elements of at most `largest` has more than 2^SUM_BITS."""
    import torch

    bits = torch.log2(largest) + torch.log2(scalar(length, largest))
    exponent = (torch.ceil(bits) - SUM_BITS).clamp(LOWEST, HIGHEST)
    powers = torch.tensor([2.0**k for k in range(LOWEST, HIGHEST + 1)], device=largest.device)
    return powers[(exponent - LOWEST).to(torch.int64)]
