"""How much a fault changes an output: in units of the scale of the column or channel, and against the noise.

The scale of a column (the last axis of a matrix, the channels of what has three dims or more, and the last axis of
those too when it is short) is the root mean square of its finite elements in the unchanged output. A column with fewer
than `LEAST_ELEMENTS` elements says little about itself and is held against the whole output where that is larger.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

LEAST_ELEMENTS = 16
_LONGEST_COLUMNS = 32


@dataclass(frozen=True)
class Effect:
    """The largest change of any output: `size` in units of its column's scale; `output` is its name.

    `above_noise`: the largest change in units of the original's own measured rounding error; infinite without one.
    """

    size: float = 0.0
    output: str = ""
    above_noise: float = 0.0

    def larger(self, other: Effect) -> Effect:
        """The effect of the two that says more."""
        return max(self, other, key=lambda e: (e.above_noise > 1.0, e.size))


def effect_of(before: Mapping[str, Array], after: Mapping[str, Array], noise: Mapping[str, float | Array]) -> Effect:
    """The effect of a fault at one point. `noise` is the original's own rounding error by output, in its units."""
    largest = Effect()
    for name, array in after.items():
        largest = largest.larger(_effect(name, before[name], array, noise.get(name, 0.0)))
    return largest


def _effect(name: str, before: Array, after: Array, noise: float | Array) -> Effect:
    import numpy as np

    if before.shape != after.shape:
        return Effect(float("inf"), name, float("inf"))
    if before.dtype.kind not in "fV" and before.dtype.name != "bfloat16":
        return Effect(float("inf"), name, float("inf")) if bool(np.any(before != after)) else Effect(0.0, name, 0.0)
    old, new = before.astype(np.float64), after.astype(np.float64)
    with np.errstate(all="ignore"):
        # Not by index: of numbers without dims NumPy makes plain scalars.
        change = np.where((old == new) | (np.isnan(old) & np.isnan(new)), 0.0, np.abs(new - old))
        change = np.where(np.isfinite(change), change, np.inf)
        if not change.any():
            return Effect(0.0, name, 0.0)
        units = change / np.maximum(column_scales(old), 1e-300)
        above = float(np.max(np.where(change > 0.0, change / np.maximum(noise, 1e-300), 0.0), initial=0.0))
    return Effect(float(units.max()), name, above)


def column_scales(values: Array) -> Array:
    """The scale of each element's column or channel, of a shape that broadcasts over `values`."""
    import numpy as np

    finite = np.where(np.isfinite(values), values, 0.0)
    whole = float(np.sqrt(np.mean(finite * finite))) if finite.size else 0.0
    axes = {1} if values.ndim >= 2 else set()
    if values.ndim >= 3 and values.shape[-1] <= _LONGEST_COLUMNS:
        axes.add(values.ndim - 1)
    scales: Array = np.asarray(whole or 1.0)
    for axis in sorted(axes):
        others = tuple(i for i in range(values.ndim) if i != axis)
        count = values.size // values.shape[axis] if values.shape[axis] else 0
        own = np.sqrt(np.mean(finite * finite, axis=others, keepdims=True))
        few = (own == 0.0) | (count < LEAST_ELEMENTS)
        own = np.asarray(np.where(few, np.maximum(own, whole or 1.0), own))
        scales = np.asarray(own) if scales.ndim == 0 else np.minimum(scales, own)
    return scales
