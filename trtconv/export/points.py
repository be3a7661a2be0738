"""Which sizes to trace at, and which sample points can be afforded."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from trtconv.core.sampling import SamplePoint, batch_dims
from trtconv.core.shapes import DimRange, ShapeSpace
from trtconv.core.tensors import TensorSpec


def traced_sizes(space: ShapeSpace, specs: Sequence[TensorSpec], *, turn: int = 0) -> dict[str, int]:
    """Small sizes at which to trace: odd, pairwise distinct, unlike the fixed dims, batch at least 2 where allowed.

    What a tracer takes for a coincidence it may bake in: an even size that halves without a rest, height equal to
    width, a batch of 1. Larger `turn` gives other sizes, for tracing again.
    """
    taken = {d for s in specs for d in s.dims if isinstance(d, int)}
    batch = batch_dims(specs)
    sizes: dict[str, int] = {}
    for name, rng in space.dims:
        values = [v for v in rng.values()[:96] if v > 1] or [rng.max]
        ranked = sorted(values, key=_coincidence(rng, values, taken, name in batch))
        sizes[name] = ranked[min(turn, len(ranked) - 1)]
        taken.add(sizes[name])
    return sizes


def _coincidence(rng: DimRange, values: list[int], taken: set[int], is_batch: bool) -> Callable[[int], float]:
    def penalty(value: int) -> float:
        unit = value // rng.multiple
        divides = 2.0 * (unit % 2 == 0) + sum(0.5 for p in (3, 5, 7) if unit % p == 0)
        tiny = 0.0 if is_batch else 2.0 * (unit < 3) + 1.5 * (value < 8)
        return divides + tiny + 8.0 * (value in taken) + values.index(value) / 8

    return penalty


@dataclass(frozen=True)
class Budget:
    """Seconds of running the module that comparing may cost in all and at one point, and bytes of inputs at one."""

    total: float = 24.0
    point: float = 5.0
    bytes: int = 256 << 20


def affordable(
    points: Sequence[SamplePoint], specs: Sequence[TensorSpec], seconds_per_byte: float, budget: Budget
) -> tuple[tuple[SamplePoint, ...], tuple[str, ...]]:
    """The points that fit the budget, in order, and notes on those changed or left out.

    A point that is too large gets the smallest batch that keeps it in the space's corner; when that is too large as
    well it is left out. The estimate is linear in the bytes of the inputs.
    """
    batch = batch_dims(specs)
    kept: dict[tuple[object, str], SamplePoint] = {}
    notes: list[str] = []
    left = budget.total
    for point in points:
        chosen = point
        for names in ((), batch):
            chosen = replace(point, dims=tuple((n, 1 if n in names else v) for n, v in point.dims))
            size = input_bytes(specs, chosen)
            if _fits(size, seconds_per_byte, min(left, budget.point), budget.bytes):
                break
        else:
            notes.append(f"not compared at {point}: one run of the module takes too long there")
            continue
        if chosen != point:
            notes.append(f"{point} is compared with a batch of 1: the whole would take too long")
        left -= size * seconds_per_byte
        kept.setdefault((chosen.dims, chosen.values), chosen)
    return tuple(kept.values()), tuple(notes)


def _fits(size: int, rate: float, seconds: float, limit: int) -> bool:
    return size * rate <= seconds and size <= limit


def input_bytes(specs: Sequence[TensorSpec], point: SamplePoint) -> int:
    """The bytes of all inputs at a point."""
    return sum(math.prod(s.shape(point.sizes)) * s.dtype.size for s in specs)
