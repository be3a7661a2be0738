"""The noise floor: what an original loses by computing in its own precision, as it is allowed to others.

The measured error of an element (`proof.rounding`) is one draw: another right evaluation of the same element draws
anew, and may be off where this one happened to be exact. So what counts is the typical error of an element's column,
relative to the column's magnitude, over all points with random values. Elements whose own error is far beyond are of
another kind: a decision fell to the other side (a sort, a comparison, a near tie). Their error is allowed where it was
measured, and nowhere else. Columns of whole numbers are exact but for such elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.proof.statistics.columns import (
    ENOUGH,
    OUTSTANDING,
    RARE,
    along,
    column_axes,
    errors_of_large,
    exact_columns,
    magnitudes,
    rows_of,
    sample_growth,
    typical_errors,
)

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# How much of its own error an element is allowed, where that is beyond its column's typical one: the other evaluation
# may be off to the other side.
OWN = 3.0
# A multiple of the typical error. It is a 90 % quantile, 1.6 standard deviations of normal errors; the difference of
# two evaluations has 1.4 times the deviation of one, the largest of a million 5 of those. The rest is for errors that
# are not normal: products of two, and approximations of exp and erf that differ between libraries.
TYPICAL = 12.0
# No column is taken for more than this many times as exact as the others of its output, relative to its magnitude.
LUCK = 4.0
# A column with this share of zeros may be cut off (ReLU): what is left says little of the numbers that were cut, and
# is as far off as they are.
CUT_OFF = 0.125
SMALLER_BY = 8.0
# Noise that would let most elements be off by this share of their magnitude says that any file is equal.
CHAOTIC = 0.05
# Of an output without measured errors: with TYPICAL, 1e-4 of the magnitude.
UNMEASURED = 8e-6
# Among equal elements all over, the choice may fall this many times as far away as it was measured.
TIES = 4.0
# The typical error of a column is one that this share of the points stays under.
MOST_POINTS = 0.75
# Columns by which more than this share of the original's own errors are beyond what is allowed hold unlike elements.
MOST_BEYOND = 1e-3
# Decisions that flip at more than this share of the elements at random values are not accidents of rounding; those that
# are off by one step may be more: of bytes that are resized to bytes a fourth is half-way between two.
MOST_FLIPS, MOST_STEPS = 0.01, 1 / 3
# A magnitude at one point is not taken for less than this share of that at the points with random values.
LEAST_SHARE = 16.0


@dataclass(frozen=True)
class NoiseFloor:
    """Of one output at one point. The arrays broadcast over the output.

    `error` is the typical error of each element and `scale` the magnitude of its column, both in the output's units;
    `exact` marks whole numbers. `chaotic`: the original's own noise would let most elements be off by `CHAOTIC` of
    their size. `reach` is 0 but where `error` is what quantisation costs (`proof.statistics.quantised_noise`), of which
    an element may be off so many.
    """

    error: Array
    scale: Array
    exact: Array
    chaotic: bool = False
    reach: float = 0.0

    @property
    def largest(self) -> float:
        """The largest error of an element."""
        return float(self.error.max(initial=0.0))


@dataclass(frozen=True)
class ColumnStatistics:
    """Of one axis: by column the magnitude, the typical error relative to it, and flags.

    `steep` is the typical error of large elements relative to themselves; `one_sign` marks columns of one sign.
    """

    axis: int | None
    scale: Array
    noise: Array
    exact: Array
    cut_off: Array
    steep: Array
    one_sign: Array


@dataclass(frozen=True)
class OutputProfile:
    """What all points with random values tell of an output; it makes the floor at any point."""

    statistics: tuple[ColumnStatistics, ...]
    measured: bool
    integral: bool = False

    def floor(self, output: Array, errors: Array | None = None, *, random: bool = True) -> NoiseFloor:
        """The floor at a point, with the errors that were measured there, if they were.

        `random` points are those at which a network has to be well behaved.
        """
        import numpy as np

        if self.integral or output.dtype.kind in "iub":
            return _floor_of_whole(output, errors, random)
        parts = [s for s in self.statistics if s.axis is None or _fits(s, output)]
        parts = parts or [_without_columns(self.statistics)]
        rank = output.ndim
        noise, scale = np.full([1] * rank, np.inf), np.full([1] * rank, np.inf)
        exact = np.zeros([1] * rank, bool)
        for part in parts:
            own_noise, own_scale = _at_point(part, output, errors)
            noise = np.minimum(noise, along(own_noise, part.axis, rank))
            scale = np.minimum(scale, along(own_scale, part.axis, rank))
            exact = exact | along(part.exact, part.axis, rank)
        growth = sample_growth(output, scale)
        noise, scale = noise * growth, scale * growth
        limit = CHAOTIC / TYPICAL * scale
        relative, sizes = _relative_noise(parts, output, scale)
        noise = np.where(exact, 0.0, np.maximum(noise, relative * sizes))
        limit = np.maximum(limit, np.where(relative > 0.0, CHAOTIC / TYPICAL * sizes, 0.0))
        chaotic = bool(random and noise.size and np.median(noise - limit) > 0.0)
        if random:
            noise = np.minimum(noise, limit)
        if errors is not None and not chaotic:
            noise = _with_own(noise, errors, exact, random)
        # An error beyond the values themselves allows everything as it is; a reference refuses to hold more. A
        # magnitude is beyond them where a probability that was 1e-9 everywhere else is 1.
        largest = np.abs(output.astype(np.float64)).max(initial=1.0, where=np.isfinite(output))
        noise, scale = (np.minimum(_finite(part), np.float32(largest)) for part in (noise, scale))
        return NoiseFloor(noise, scale, exact, chaotic)


def profile(outputs: Sequence[Array], errors: Sequence[Array | None], others: Sequence[Array] = ()) -> OutputProfile:
    """The profile of one output from its values at points with random values, and its measured errors there.

    `others` are its values at other points, which have to be whole numbers too where a column is to count as such.
    """
    import numpy as np

    measured = any(e is not None for e in errors)
    if not outputs or outputs[0].dtype.kind in "iub":
        return OutputProfile((_empty(),), measured, bool(outputs))
    same = [o for o in others if o.ndim == outputs[0].ndim]
    axes: tuple[int | None, ...] = column_axes([tuple(o.shape) for o in outputs]) or (None,)
    measured = measured and np.dtype(outputs[0].dtype).itemsize <= 4
    statistics = [_statistics(axis, outputs, errors, same, measured) for axis in axes]
    if measured and len(statistics) > 1:
        statistics = _describing(statistics, outputs, errors)
    return OutputProfile(tuple(statistics), measured)


def _describing(
    statistics: list[ColumnStatistics], outputs: Sequence[Array], errors: Sequence[Array | None]
) -> list[ColumnStatistics]:
    """The axes whose columns hold alike elements: those of the rest say nothing of an element's noise.

    The column of a detector's anchor holds four coordinates and eighty scores, and typical of it are the scores.
    """

    shares = []
    for part in statistics:
        beyond = total = 0
        for output, error in zip(outputs, errors, strict=True):
            if error is not None:
                allowed = TYPICAL * along(_at_point(part, output, None)[0], part.axis, output.ndim)
                beyond, total = beyond + int((error > allowed).sum()), total + error.size
        shares.append(beyond / max(1, total))
    return [p for p, share in zip(statistics, shares, strict=True) if share <= max(MOST_BEYOND, min(shares))]


def output_profiles(
    outputs: Sequence[Mapping[str, Array]], errors: Sequence[Mapping[str, Array]], random: Sequence[bool]
) -> dict[str, OutputProfile]:
    """The profiles by output, of the outputs at all points and the errors that were measured there."""
    profiles = {}
    for name in outputs[0] if outputs else ():
        at = [i for i, o in enumerate(outputs) if random[i] and name in o]
        rest = [o[name] for i, o in enumerate(outputs) if not random[i] and name in o]
        profiles[name] = profile([outputs[i][name] for i in at], [errors[i].get(name) for i in at], rest)
    return profiles


def noise_floors(
    outputs: Sequence[Mapping[str, Array]], errors: Sequence[Mapping[str, Array]], random: Sequence[bool]
) -> tuple[list[dict[str, NoiseFloor]], dict[str, OutputProfile]]:
    """The floors of all outputs at all points, and the profiles by output."""
    profiles = output_profiles(outputs, errors, random)
    floors = [
        {n: profiles[n].floor(v, errors[i].get(n), random=random[i]) for n, v in o.items() if n in profiles}
        for i, o in enumerate(outputs)
    ]
    return floors, profiles


def _statistics(
    axis: int | None, outputs: Sequence[Array], errors: Sequence[Array | None], others: Sequence[Array], measured: bool
) -> ColumnStatistics:
    import numpy as np

    rows = [rows_of(o, axis) for o in outputs]
    scales = np.stack([magnitudes(r) for r in rows])
    scale = np.median(np.where(scales > 0, scales, scales.max(axis=0)), axis=0)
    relative_errors, steepness = [], []
    for own, error, values in zip(scales, errors, rows, strict=True):
        if error is not None and measured:
            least = np.maximum(np.maximum(own, scale / LEAST_SHARE), 1e-300)
            relative_errors.append(typical_errors(rows_of(error, axis), least) / least)
            steepness.append(errors_of_large(values, rows_of(error, axis)))
    # A point at which many decisions fall to the other side loosens itself and not the others.
    noise = (
        np.quantile(relative_errors, MOST_POINTS, axis=0, method="higher")
        if relative_errors
        else np.full_like(scale, UNMEASURED)
    )
    noise = np.maximum(noise, np.median(noise) / LUCK)
    exact = exact_columns([*rows, *(rows_of(o, axis) for o in others if axis is None or o.shape[axis] == len(scale))])
    counts = [r.shape[1] for r in rows]
    zeros = sum((r == 0).sum(axis=1) for r in rows) / max(1, sum(counts))
    steep = np.quantile(steepness, MOST_POINTS, axis=0, method="higher") if steepness else np.zeros_like(scale)
    steep = np.maximum(steep, np.median(steep) / LUCK)
    one_sign = np.logical_and.reduce([(r >= 0).all(axis=1) for r in rows])
    one_sign |= np.logical_and.reduce([(r <= 0).all(axis=1) for r in rows])
    return ColumnStatistics(axis, scale, noise, exact, np.asarray(zeros >= CUT_OFF), steep, one_sign)


def _relative_noise(parts: Sequence[ColumnStatistics], output: Array, scale: Array) -> tuple[Array, Array]:
    """By element the noise relative to itself, 0 where its column's magnitude says more, and the element's size.

    A sigmoid or an exp makes an error of its argument one relative to its value. Of scores that are 3e-6 at most
    places and 0.04 at a few, what is typical of the column says nothing of those few.
    """
    import numpy as np

    sizes = np.where(np.isfinite(output), np.abs(output.astype(np.float64)), 0.0)
    relative = np.full([1] * output.ndim, np.inf)
    one_sign = np.ones([1] * output.ndim, bool)
    for part in parts:
        relative = np.minimum(relative, along(part.steep, part.axis, output.ndim))
        one_sign = one_sign & along(part.one_sign, part.axis, output.ndim)
    return np.where(one_sign | (sizes > OUTSTANDING * scale), relative, 0.0), sizes


def _at_point(part: ColumnStatistics, output: Array, errors: Array | None) -> tuple[Array, Array]:
    """By column of a part, the typical error and the magnitude at a point, in the output's units."""
    import numpy as np

    rows = rows_of(output, part.axis)
    own = magnitudes(rows)
    # Two numbers that happen to cancel are as far off as the rest of an output that is large at this point.
    least = part.scale / LEAST_SHARE if rows.shape[1] >= ENOUGH else part.scale * _growth(own, part.scale)
    scale = np.maximum(own, least)
    # What is left of a column that is cut off says little of its own.
    scale = np.where(part.cut_off, np.maximum(scale, np.median(scale) / SMALLER_BY), scale)
    # A column that is nearly zero at random values has errors as large as itself. Where it is large, and errors were
    # measured, that ratio says nothing.
    relative = part.noise if errors is None else np.minimum(part.noise, CHAOTIC / TYPICAL)
    noise = relative * scale
    if errors is not None:
        noise = np.maximum(noise, typical_errors(rows_of(errors, part.axis), scale))
    return np.where(part.cut_off, np.maximum(noise, np.median(noise)), noise), scale


def _growth(own: Array, typical: Array) -> float:
    """How many times as large as at random values an output's columns are at a point, by their median; 1 at least."""
    import numpy as np

    used = typical > 0
    return max(1.0, float(np.median(own[used] / typical[used]))) if used.any() else 1.0


def _with_own(noise: Array, errors: Array, exact: Array, random: bool) -> Array:
    """With the elements' own errors where they are beyond the typical ones of their columns."""
    import numpy as np

    own, flips = errors * (OWN / TYPICAL), exact & (errors > 0)
    share = flips.sum() / max(1, np.broadcast_to(exact, errors.shape).sum())
    if random:
        # One step where it was measured, unless steps are all over: that is not an accident of rounding.
        by_steps = errors.max(initial=0.0, where=flips) <= 1.0
        stable = flips.sum() > 1 and share > (MOST_STEPS if by_steps else MOST_FLIPS)
        own = np.where(exact, 0.0 if stable else errors / TYPICAL, own)
    elif share > RARE:
        # Ties all over: which of equal elements a sort takes first is any of them.
        own = np.where(exact, errors.max() * (TIES / TYPICAL), own)
    beyond: Array = np.maximum(noise, own)
    return beyond if bool((own > noise).any()) else noise


def _floor_of_whole(output: Array, errors: Array | None, random: bool) -> NoiseFloor:
    import numpy as np

    ones = [1] * output.ndim
    exact = np.ones(ones, bool)
    noise = np.zeros(ones)
    if errors is not None:
        noise = _with_own(noise, errors, exact, random)
    return NoiseFloor(_finite(noise), np.ones(ones, np.float32), exact)


def _finite(values: Array) -> Array:
    """In float32, the largest number in place of what is beyond it: noise beside 3e38 may be."""
    import numpy as np

    top = float(np.finfo(np.float32).max)
    result: Array = np.minimum(np.nan_to_num(values, nan=0.0, posinf=top), top).astype(np.float32)
    return result


def _fits(part: ColumnStatistics, output: Array) -> bool:
    return part.axis is not None and output.ndim > part.axis and output.shape[part.axis] == len(part.scale)


def _without_columns(parts: Sequence[ColumnStatistics]) -> ColumnStatistics:
    """One group in place of columns that an output does not have at some size."""
    import numpy as np

    part = parts[0]
    if not part.scale.size:
        return _empty()
    return ColumnStatistics(
        None,
        np.median(part.scale, keepdims=True),
        part.noise.max(keepdims=True),
        np.asarray([part.exact.all()]),
        np.zeros(1, bool),
        np.zeros(1),
        np.zeros(1, bool),
    )


def _empty() -> ColumnStatistics:
    import numpy as np

    no = np.zeros(1, bool)
    return ColumnStatistics(None, np.zeros(1), np.full(1, UNMEASURED), no, no, np.zeros(1), no)
