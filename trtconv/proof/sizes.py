"""Which sizes to look at: those to trace at, the sample points that can be afforded, and the small ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import SamplePoint, batch_dims, sample_points


def traced_sizes(space: ShapeSpace, specs: Sequence[TensorSpec], *, turn: int = 0) -> dict[str, int]:
    """Small sizes at which to trace: odd, pairwise distinct, unlike the fixed dims, batch at least 2 where allowed.

    What a tracer takes for a coincidence it may bake in: an even size that halves without a rest, height equal to
    width, a batch of 1. Larger `turn` gives other sizes, for tracing again.
    """
    used_sizes = {d for s in specs for d in s.dims if isinstance(d, int)}
    batch = batch_dims(specs)
    sizes: dict[str, int] = {}
    for name, rng in space.dims:
        values = [v for v in rng.values()[:96] if v > 1] or [rng.max]
        ranked = sorted(values, key=_coincidence(rng, values, used_sizes, name in batch))
        sizes[name] = ranked[min(turn, len(ranked) - 1)]
        used_sizes.add(sizes[name])
    return sizes


def _coincidence(rng: DimRange, values: list[int], used_sizes: set[int], is_batch: bool) -> Callable[[int], float]:
    def penalty(value: int) -> float:
        unit = value // rng.multiple
        divides = 2.0 * (unit % 2 == 0) + sum(0.5 for p in (3, 5, 7) if unit % p == 0)
        tiny = 0.0 if is_batch else 2.0 * (unit < 3) + 1.5 * (value < 8)
        return divides + tiny + 8.0 * (value in used_sizes) + values.index(value) / 8

    return penalty


@dataclass(frozen=True)
class Budget:
    """What comparing may cost: seconds for all points that are not `ALWAYS`, seconds and bytes of inputs at one point.

    The limits are wide, since which points are compared should depend on the model and not on how busy the machine is.
    """

    total: float = 90.0
    point: float = 45.0
    bytes: int = 256 << 20


# A model is not called equal without these. With a huge batch they may be run with a batch of 1, never left out.
ALWAYS = ("traced", "opt", "min", "max", "interior-1", "interior-2", "batch", "zeros")


def affordable(
    points: Sequence[SamplePoint], specs: Sequence[TensorSpec], seconds_per_byte: float, budget: Budget
) -> tuple[tuple[SamplePoint, ...], tuple[str, ...]]:
    """The points that fit the budget, in order, and notes on those changed or left out.

    A point that is too large gets a batch of 1. Points beyond `ALWAYS` are left out when the total is spent. The
    estimate is linear in the bytes of the inputs.
    """
    batch = batch_dims(specs)
    chosen_points: dict[tuple[object, str], SamplePoint] = {}
    notes: list[str] = []
    left = budget.total
    for point in points:
        chosen, size = point, input_bytes(specs, point)
        if size * seconds_per_byte > budget.point or size > budget.bytes:
            chosen = replace(point, dims=tuple((n, 1 if n in batch else v) for n, v in point.dims))
            size = input_bytes(specs, chosen)
        cost = size * seconds_per_byte
        if point.label not in ALWAYS and cost > left:
            notes.append(f"not compared at {point}: the {budget.total:.0f} s for comparing were used up")
            continue
        if chosen != point:
            notes.append(f"{point} is compared with a batch of 1: the full batch is too large for one run")
        left -= cost
        chosen_points.setdefault((chosen.dims, chosen.values), chosen)
    return tuple(chosen_points.values()), tuple(notes)


def input_bytes(specs: Sequence[TensorSpec], point: SamplePoint) -> int:
    """The bytes of all inputs at a point."""
    return sum(math.prod(s.shape(point.sizes)) * s.dtype.size for s in specs)


# Where only shapes are worked out: min, opt, and two that divide by nothing.
SHAPE_LABELS = ("opt", "min", "interior-1", "interior-2")


def shape_points(space: ShapeSpace, specs: Sequence[TensorSpec]) -> tuple[SamplePoint, ...]:
    """The points at which shapes are worked out; several values at the same sizes count once.

    Not max and the corners: a part of a graph behaves there as at other sizes, and would take much longer to run.
    """
    distinct: dict[tuple[tuple[str, int], ...], SamplePoint] = {}
    for point in sample_points(space, specs):
        if point.label in SHAPE_LABELS:
            distinct.setdefault(point.dims, point)
    return tuple(distinct.values())


def elements(specs: Sequence[TensorSpec], point: SamplePoint) -> int:
    """The elements of all inputs at a point."""
    return sum(math.prod(s.shape(point.sizes)) for s in specs)


def small_points(space: ShapeSpace, specs: Sequence[TensorSpec], random: int) -> list[SamplePoint]:
    """So many points with random values, the smallest first, and the first with zeros: for what runs twice at each."""
    points = sample_points(space, specs)
    chosen = sorted((p for p in points if p.values == "random"), key=lambda p: elements(specs, p))[:random]
    return [*chosen, *[p for p in points if p.values == "zeros"][:1]]
