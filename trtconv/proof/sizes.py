"""Which sizes to look at: those to trace at, the sample points that can be afforded, and the small ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.points import SamplePoint, batch_dims, sample_points
from trtconv.proof.probes.masks import MASK_KINDS


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
    """What comparing may cost, in floating point operations of the original, and in bytes of inputs at one point.

    `extra` is for all points together that are not `ALWAYS`; `point` for one run; special values that take more than
    `special` are looked at where a run takes least. Not seconds: which points are compared depends on the model and
    not on how busy the machine is. A core of today does about `OPERATIONS_PER_SECOND`.
    """

    extra: float = 4e11
    point: float = 1.2e11
    special: float = 2e10
    bytes: int = 256 << 20


OPERATIONS_PER_SECOND = 4e10
# A model is not called equal without these. With a huge batch they may be run with a batch of 1, never left out.
ALWAYS = ("traced", "opt", "min", "max", "interior-1", "interior-2", "batch", "zeros")
# Special values along a shorter axis say little: a mask of one place has no prefix.
SHORT = 4
# How many times as much as others the point with a batch over 1 may cost.
BATCH_MAY = 8.0
TELLING = ("full", *MASK_KINDS, "edges", "ties", "bytes", "constant", "large", "small", "denormal", "unit")


def affordable(
    points: Sequence[SamplePoint], specs: Sequence[TensorSpec], work_per_byte: float, budget: Budget
) -> tuple[tuple[SamplePoint, ...], tuple[str, ...]]:
    """The points that fit the budget, in order, and notes on those changed or left out.

    A point that is too large gets a batch of 1, but for the first, which was run already. Points beyond `ALWAYS` are
    left out, the dearest first, when the budget is spent. The estimate is linear in the bytes of the inputs.
    """
    batch = batch_dims(specs)
    cheapest = min((p for p in points if p.values == "random"), key=lambda p: _least_telling(p, specs, batch))
    costs: dict[SamplePoint, float] = {}
    narrowed: list[SamplePoint] = []
    for point in points:
        chosen, size = point, input_bytes(specs, point)
        if point.values != "random" and size * work_per_byte > budget.special:
            least = input_bytes(specs, cheapest)
            chosen, size = (replace(point, dims=cheapest.dims), least) if least < size else (chosen, size)
        # What shows that the examples of a batch do not mix may cost more.
        most = budget.point * (BATCH_MAY if point.label == "batch" else 1.0)
        if point != points[0] and (size * work_per_byte > most or size > budget.bytes):
            single = replace(chosen, dims=tuple((n, 1 if n in batch else v) for n, v in chosen.dims))
            narrowed += [point] if single != chosen else []
            chosen, size = single, input_bytes(specs, single)
        if not any(c.dims == chosen.dims and c.values == chosen.values for c in costs):
            costs[chosen] = size * work_per_byte
    left, missing = budget.extra, []
    for point in sorted((p for p in costs if p.label not in ALWAYS), key=lambda p: (p.advisory, costs[p], _rank(p))):
        if costs[point] > left:
            missing.append(point)
        else:
            left -= costs[point]
    notes = []
    if narrowed:
        shown = ", ".join(str(p) for p in narrowed)
        notes.append(f"compared with a batch of 1, since the full batch is too large for one run: {shown}")
    if missing:
        shown = ", ".join(str(p) for p in costs if p in missing)
        notes.append(f"not compared at {shown}: all points but the main ones may take {budget.extra / 1e9:.0f} GFLOP")
    return tuple(p for p in costs if p not in missing), tuple(notes)


def _rank(point: SamplePoint) -> int:
    """Of special values at one size, those that tell most come first."""
    return TELLING.index(point.values) if point.values in TELLING else len(TELLING)


def _least_telling(point: SamplePoint, specs: Sequence[TensorSpec], batch: Sequence[str]) -> tuple[bool, int]:
    """Sorts points by cost, those with a short axis last."""
    return any(v < SHORT for n, v in point.dims if n not in batch), input_bytes(specs, point)


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
