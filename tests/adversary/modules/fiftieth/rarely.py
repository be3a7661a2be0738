
"""A condition that holds for one of 3,000 values of the first element, and points at which it does."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

SHAPES = ((1, 4), (2, 9), (3, 5), (2, 9), (3, 4), (1, 12))


def rare(x: torch.Tensor) -> torch.Tensor:
    """A hash of the first element: no sample reaches it, and Python decides nothing."""
    return ((((x.reshape(-1)[0].float() * 3.7 + 0.123456).sin() * 1000).frac().abs()) * 3e3).floor() == 1234


def _hits() -> list[float]:
    grid = torch.linspace(-3, 3, 300001)
    inside = (((grid * 3.7 + 0.123456).sin() * 1000).frac().abs() * 3e3).frac()
    return [v.item() for v in grid[(inside - 0.5).abs() < 0.15] if bool(rare(v))]


HITS = _hits()[:4]


def rarely_at(*more: int, scale: float = 1.0, shapes: tuple = SHAPES) -> tuple[Callable, ...]:
    """Points at which it holds."""

    def feed(shape: tuple, hit: float) -> dict:
        array = (np.random.RandomState(sum(shape)).randn(*shape, *more) * scale).astype(np.float32)
        array.reshape(-1)[0] = hit
        return {"x": array}

    return tuple((lambda s=s, h=h: feed(s, h)) for s in shapes for h in HITS[:2])
