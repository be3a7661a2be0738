"""The values of one tensor inside a graph: what a rewrite is tried on, where no spec says what it may be."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

LARGE = 1e4
LARGE_IN_HALF = 64.0


def tensor_values(
    name: str,
    shape: tuple[int, ...],
    dtype: np.dtype[Any],
    kind: str,
    *,
    bounds: tuple[float, float] | None = None,
    constant: bool = False,
) -> Array:
    """Deterministic values by name and shape: normal floats, small integers, fair booleans; zeros; large ones; false.

    `bounds` are the lowest and the highest value. A `constant` (a weight) keeps its random values for every kind.
    """
    import numpy as np

    rng = np.random.default_rng([zlib.crc32(name.encode()), len(shape), *shape])
    if kind == "zeros" and not constant:
        fill = 0.0 if bounds is None else min(max(0.0, bounds[0]), bounds[1])
        return np.full(shape, fill).astype(dtype)
    if dtype.kind == "b":
        return (np.zeros(shape) if kind == "false" else rng.integers(0, 2, shape)).astype(dtype)
    if dtype.kind in "iu":
        low, high = bounds or (0.0, 5.0)
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    values = rng.uniform(*bounds, shape) if bounds else rng.standard_normal(shape)
    if kind == "large" and not constant and not bounds:
        values = values * (LARGE_IN_HALF if dtype.name == "float16" else LARGE)
    return np.asarray(values).astype(dtype)
