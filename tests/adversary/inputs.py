"""Inputs that rounds of attacks feed besides the judge's own, always the same for a shape and a seed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from tests.adversary.attack import Array, Feed

# The judge's kinds of floats but for infinities and values that make most modules overflow.
FINITE = ("normal", "unit", "bytes", "tiny", "zeros", "tenths", "halves", "ascending", "positive", "negative", "ones")


def normal(*shape: int, scale: float = 1.0, seed: int = 0, **more: Array) -> Callable[[], Feed]:
    """Normal numbers for `x`, and other inputs as they are."""
    return lambda: {"x": (np.random.RandomState(seed + sum(shape)).randn(*shape) * scale).astype(np.float32), **more}


def constant(*shapes: tuple[int, ...], value: float = 60.0) -> tuple[Callable[[], Feed], ...]:
    """One value everywhere in `x`, at each of these shapes."""
    return tuple(partial(lambda shape: {"x": np.full(shape, value, np.float32)}, shape) for shape in shapes)


def sprinkled(
    *values: float, sizes: Sequence[tuple[int, ...]], more: tuple[int, ...] = ()
) -> tuple[Callable[[], Feed], ...]:
    """Normal numbers for `x`, every third of them one of these values: each at each size, with `more` dims behind."""

    def feed(shape: tuple[int, ...], value: float) -> Feed:
        array = np.random.RandomState(1).randn(*shape, *more).astype(np.float32)
        array.reshape(-1)[::3] = value
        return {"x": array}

    return tuple(partial(feed, shape, value) for shape in sizes for value in values)


def halves(*shape: int, seed: int = 0, **more: Array) -> Callable[[], Feed]:
    """Multiples of 0.5 from -3 to 3 for `x`, among which there are ties, and other inputs as they are."""
    return lambda: {
        "x": (np.random.RandomState(seed + sum(shape)).randint(-6, 7, shape) / 2).astype(np.float32),
        **more,
    }
