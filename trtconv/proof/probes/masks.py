"""Masks with a structure, which random masks never have: padding at one end, a row without anything, a triangle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MASK_KINDS = ("prefix", "suffix", "one-row", "none")


def structured_mask(kind: str, random: Array) -> Array:
    """A boolean mask of the shape of `random` (booleans).

    `prefix` is true from the start of each row up to that row's length, `suffix` from there to the end: the two forms
    of padding. Lengths fall from the whole row to 1; a square mask grows by one a row, as causal masks do. `one-row`
    has a row all true and another all false among random ones, `none` is all false.
    """
    import numpy as np

    if kind == "none" or not random.size or random.ndim == 0:
        return np.zeros_like(random)
    rows = random.reshape(-1, random.shape[-1])
    count, width = rows.shape
    if kind == "one-row":
        chosen = rows.copy()
        chosen[0] = True
        chosen[1:2] = False
        return chosen.reshape(random.shape)
    before = np.arange(width)[None, :] < _lengths(random.shape, count, width)[:, None]
    result: Array = (before if kind == "prefix" else ~before).reshape(random.shape)
    return result


def _lengths(shape: tuple[int, ...], count: int, width: int) -> Array:
    import numpy as np

    if len(shape) > 1 and shape[-2] == width:
        return np.arange(count) % width + 1
    return np.maximum(1, width - np.arange(count) * max(1, width // max(2, min(count, width))) % width)
