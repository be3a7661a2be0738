"""Values that users feed and random ones never are: the ranges of images, ties, constant images, one infinity."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from trtconv.proof.probes.masks import MASK_KINDS, structured_mask

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

Bounds = tuple[float, float] | None

RANGE_KINDS = ("unit", "bytes", "small", "constant", "ties")
INFINITE_KINDS = ("minus-infinity", "plus-infinity")
PROBE_KINDS = (*RANGE_KINDS, "edges", *MASK_KINDS, *INFINITE_KINDS)
IN_WORDS = {
    "unit": "the floats are 0..1",
    "bytes": "the floats are whole numbers of 0..255",
    "small": "the floats are 1e-7..1e-3",
    "constant": "all values of an example are equal",
    "ties": "many values are equal, halves and whole numbers",
    "edges": "the values are the lowest and highest ones",
    "prefix": "each mask is true up to some place in a row",
    "suffix": "each mask is true from some place in a row on",
    "one-row": "a mask has a row all true and one all false",
    "none": "the masks are all false",
    "boundary": "inner values lie where the graph decides",
    "minus-infinity": "one value is -inf",
    "plus-infinity": "one value is inf",
}
# Equal values, both zeros, whole numbers and halves: what comparisons, roundings and sorts decide by.
TIED = (-1.5, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 1.5, 2.5)
BYTES = 255
SMALL = (1e-7, 1e-3)


def probe_kinds(inputs: Iterable[tuple[str, Bounds]], among: Iterable[str] = PROBE_KINDS) -> tuple[str, ...]:
    """The kinds of values that change some input; inputs are (`bool`, `int` or `float`, value range)."""
    listed = list(inputs)
    return tuple(k for k in among if any(applies(k, kind, bounds) for kind, bounds in listed))


def applies(kind: str, dtype_kind: str, bounds: Bounds) -> bool:
    """True when values of a kind are others than random ones for such an input."""
    if kind in MASK_KINDS:
        return dtype_kind == "bool" or (dtype_kind == "int" and _holds_masks(bounds))
    if kind == "edges":
        return dtype_kind == "int" or (dtype_kind == "float" and bounds is not None)
    if dtype_kind != "float":
        return False
    if bounds is None:
        return True
    # Within a value range: what lies inside it. Uniform values of it are the random ones.
    reach = {"bytes": (0.0, float(BYTES)), "small": SMALL}.get(kind)
    return kind in ("constant", "ties") or (reach is not None and bounds[0] <= reach[0] and reach[1] <= bounds[1])


def _holds_masks(bounds: Bounds) -> bool:
    return bounds is None or (bounds[0] <= 0 and bounds[1] >= 1)


def probe_values(kind: str, random: Array, bounds: Bounds, seed: int = 0) -> Array:
    """Values of a kind in the shape and dtype of `random`, which is given back where the kind says nothing of it.

    `unit` is uniform in 0..1, `bytes` whole numbers of 0..255, `small` 1e-7..1e-3 of both signs, `constant` one value
    by row of the first axis, `ties` halves and whole numbers with both zeros, `edges` the lowest and highest values
    of integers and of floats with a range, the infinities one element of each example; masks
    see `masks.structured_mask`.
    """
    import numpy as np

    dtype_kind = {"b": "bool", "i": "int", "u": "int"}.get(random.dtype.kind, "float")
    if not random.size or not applies(kind, dtype_kind, bounds):
        return random
    if kind in MASK_KINDS:
        fair = random.astype(bool) if dtype_kind == "bool" else random % 2 == 1
        return structured_mask(kind, fair).astype(random.dtype)
    chance = np.random.default_rng([seed, random.size])
    if kind == "edges":
        low, high = bounds or (0.0, 9.0)
        return np.asarray(chance.choice([low, high], random.shape)).astype(random.dtype)
    return _floats(kind, random, bounds, chance).astype(random.dtype)


def _floats(kind: str, random: Array, bounds: Bounds, chance: np.random.Generator) -> Array:
    import numpy as np

    shape = random.shape
    if kind == "unit":
        return np.asarray(chance.uniform(0.0, 1.0, shape))
    if kind == "bytes":
        return np.asarray(chance.integers(0, BYTES + 1, shape))
    if kind == "small":
        sizes = np.exp(chance.uniform(math.log(SMALL[0]), math.log(SMALL[1]), shape))
        return np.asarray(sizes if bounds is not None else sizes * chance.choice([-1.0, 1.0], shape))
    levels = np.asarray(TIED) if bounds is None else np.linspace(*bounds, 5)
    if kind == "ties":
        return np.asarray(chance.choice(levels, shape))
    if kind == "constant":
        rows = shape[0] if len(shape) > 1 else 1
        chosen = levels[(np.arange(rows) + len(levels) // 2 + 1) % len(levels)]
        return np.broadcast_to(chosen.reshape(rows, *[1] * max(0, len(shape) - 1)) if shape else chosen[0], shape)
    # One in each example, at another place in each: one in all would miss what treats places differently.
    values = random.copy().reshape(shape[0] if len(shape) > 1 else 1, -1)
    rows, width = values.shape
    values[np.arange(rows), (width // 3 + np.arange(rows)) % width] = -np.inf if kind == "minus-infinity" else np.inf
    return values.reshape(shape)
