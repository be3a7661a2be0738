"""Scale factors that a file cuts to the same size as torch: torch multiplies in FP64, a Resize in FP32.

660 * 1.55 is 1023 in FP64, and 1022.99994 in FP32, of which a Resize makes 1022. One or two steps of FP32 above 1.55
the product is 1023 again, and positions move by less than FP32 rounds them.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

# Sizes of a TorchScript trace have no ranges: a factor that holds for the longest, else for those of images.
LONGEST_TRACED = (1 << 20, 1 << 16, 1 << 13)
# Steps of FP32 that are tried, and how far off a runtime may compute the product.
STEPS = (1, -1, 2, -2, 3, -3, 4, -4)
MARGIN = 2.0**-24
MOST_DIVISOR = 4096


def cut_alike(lengths: Any, scale: float, written: float) -> bool:
    """True when floor(length * written) in FP32 is floor(length * scale) in FP64 at each of the lengths."""
    import numpy as np

    expected = np.floor(lengths * scale)
    narrow = np.floor(lengths.astype(np.float32) * np.float32(written))
    return bool(np.array_equal(expected, narrow))


def written_scale(lengths: Any, scale: float) -> float | None:
    """A factor in FP32 for a Resize of axes of these lengths, an int64 array; None where there is none.

    The factor itself where FP32 cuts its products as FP64 does; else the nearest one that holds with a margin.
    """
    import numpy as np

    if cut_alike(lengths, scale, scale):
        return scale
    bits = np.float32(scale)
    for step in STEPS:
        moved = bits
        for _ in range(abs(step)):
            moved = np.nextafter(moved, np.float32(np.inf if step > 0 else 0.0))
        products = lengths * float(moved)
        inside = np.floor(products * (1 - MARGIN)) == np.floor(products * (1 + MARGIN))
        if cut_alike(lengths, scale, float(moved)) and bool(inside.all()):
            return float(moved)
    return None


def whole_ratio(scale: float) -> tuple[int, int] | None:
    """(a, b) with floor(n * scale) = n * a // b in FP64 for each n up to one of LONGEST_TRACED; None without any."""
    import numpy as np

    if not math.isfinite(scale):
        return None
    ratio = Fraction(scale).limit_denominator(MOST_DIVISOR)
    for longest in LONGEST_TRACED:
        lengths = np.arange(longest + 1)
        if np.array_equal(np.floor(lengths * scale), lengths * ratio.numerator // ratio.denominator):
            return ratio.numerator, ratio.denominator
    return None
