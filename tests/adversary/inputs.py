"""Inputs that rounds of attacks feed besides the judge's own, always the same for a shape and a seed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tests.adversary.attack import Array, Feed

# The judge's kinds of floats but for infinities and values that make most modules overflow.
FINITE = ("normal", "unit", "bytes", "tiny", "zeros", "tenths", "halves", "ascending", "positive", "negative", "ones")


def normal(*shape: int, scale: float = 1.0, seed: int = 0, **more: Array) -> Callable[[], Feed]:
    """Normal numbers for `x`, and other inputs as they are."""
    return lambda: {"x": (np.random.RandomState(seed + sum(shape)).randn(*shape) * scale).astype(np.float32), **more}


def halves(*shape: int, seed: int = 0, **more: Array) -> Callable[[], Feed]:
    """Multiples of 0.5 from -3 to 3 for `x`, among which there are ties, and other inputs as they are."""
    return lambda: {
        "x": (np.random.RandomState(seed + sum(shape)).randint(-6, 7, shape) / 2).astype(np.float32),
        **more,
    }
