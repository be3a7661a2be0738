"""Shape spaces of multiples: narrowed to those inside, or widened to those that cover the space."""

from __future__ import annotations

import math
from collections.abc import Mapping

from trtconv.core.errors import InvalidRequestError
from trtconv.core.shape_space.space import DimRange, ShapeSpace


def aligned_space(space: ShapeSpace, multiples: Mapping[str, int]) -> ShapeSpace:
    """The space with the dims of `multiples` narrowed to multiples: min rounded up, max down, opt to the nearest.

    Raises InvalidRequestError for a dim that has no such size.
    """
    return ShapeSpace(tuple((n, aligned_range(n, r, multiples.get(n, 1))) for n, r in space.dims))


def aligned_range(name: str, rng: DimRange, multiple: int) -> DimRange:
    """One range narrowed to multiples of `multiple` and of its own multiple."""
    step = math.lcm(multiple, rng.multiple)
    low, high = round_up(rng.min, step), rng.max // step * step
    if low > high:
        near = sorted({v for v in (high, low) if v > 0})
        raise InvalidRequestError(
            f"the range {name}={rng} has no multiple of {step}",
            hint=f"make it reach {' or '.join(map(str, near))}, or keep it and add --pad-to-multiple",
        )
    # The nearest; of two that are equally near the larger one, which an image of that size still fits into.
    opt = (rng.opt + step // 2) // step * step
    return DimRange(low, min(max(opt, low), high), high, step)


def covering_space(space: ShapeSpace, multiples: Mapping[str, int]) -> ShapeSpace:
    """The sizes after padding: each dim of `multiples` rounded up to its multiple, at both ends and at opt."""
    return ShapeSpace(tuple((n, covering_range(r, multiples[n]) if n in multiples else r) for n, r in space.dims))


def covering_range(rng: DimRange, multiple: int) -> DimRange:
    """One range after padding to `multiple`."""
    low, opt, high = (round_up(v, multiple) for v in (rng.min, rng.opt, rng.max))
    return DimRange(low, opt, high, multiple)


def round_up(value: int, multiple: int) -> int:
    """The least multiple that is not below `value`."""
    return -(-value // multiple) * multiple
