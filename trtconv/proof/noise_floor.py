"""What a module's own rounding allows each element of an output, from its measured errors.

The measured error of an element is one draw: the next evaluation of the same element draws anew, and may be off where
this one happened to be exact. So no element is held to less than the `SPREAD`-fold of the typical error, the 90 %
quantile over all elements. Of normal errors the largest of a million is 3 times that quantile, of products of two 10
times. Elements beyond are of another kind: a decision fell to the other side (a sort, a comparison, a near tie in a
softmax). Their error is allowed where it was measured, and nowhere else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

SPREAD = 10.0
# Errors that the tightest tolerance takes anyway need no number for each element.
NEGLIGIBLE = 1e-5


def rounding_allowance(errors: Array) -> float | Array:
    """One number where all elements round alike, else float32 numbers of the shape of `errors`, the floor included."""
    import numpy as np

    if not errors.size:
        return 0.0
    largest = float(errors.max())
    flat = errors.reshape(-1)
    # A hundred thousand tell a quantile well enough.
    floor = SPREAD * float(np.quantile(flat[:: max(1, flat.size // 100_000)], 0.9))
    if largest <= max(floor, NEGLIGIBLE):
        return largest
    return np.maximum(errors, floor).astype(np.float32)


def largest_of(rounding: float | Array) -> float:
    """The largest number of an allowance."""
    return float(rounding) if isinstance(rounding, (int, float)) else float(rounding.max(initial=0.0))


def combined(one: float | Array, other: float | Array) -> float | Array:
    """For each element the larger of two allowances."""
    import numpy as np

    if isinstance(one, (int, float)) and isinstance(other, (int, float)):
        return max(one, other)
    found: Array = np.maximum(one, other).astype(np.float32)
    return found
