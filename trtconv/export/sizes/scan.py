"""Looking at many sizes, for files whose exporter does not know for which sizes they hold.

torch.export states the sizes at which its trace is valid, and refuses when that is less than the space. TorchScript
records one run and says nothing: a branch that only one size takes would not be seen by the few sample points. What
either computes in floats is rounded to FP32 in the file, and `int(h * 0.29)` then is another number at a single size.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.export.exporters.attempt import Attempt, Job
from trtconv.proof.comparison import first_failure
from trtconv.proof.points import SamplePoint, batch_dims
from trtconv.proof.proving import compare_at
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import own_errors

MOST_PER_DIM = 1024
ENOUGH = 48
SECONDS = 8.0
LESS_SECONDS = 2.0
STEPS = (2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 12, 14)
DRAWN = 8
MOST_SHARED = 4096


def scan_points(job: Job, edges: Sequence[Mapping[str, int]]) -> Iterator[SamplePoint]:
    """The edges; then in turns sizes of each dim, the others as traced, and sizes at which all dims share something.

    A dim with more than `MOST_PER_DIM` sizes gives those next to its ends, and others drawn at random: an even step
    would show only odd ones, or only multiples of something.
    """
    base, seed, space = dict(job.sizes), job.request.source.seed, job.request.space
    wanted = [dict(sizes) for sizes in edges if all(v in space[n] for n, v in sizes.items())]
    lists = [[{n: v} for v in _spread(r, base[n])] for n, r in space.dims]
    lists.append(list(_together(space, batch_dims(job.request.inputs))))
    wanted += [sizes for turn in itertools.zip_longest(*lists) for sizes in turn if sizes is not None]
    for sizes in wanted:
        yield SamplePoint("scan", tuple({**base, **sizes}.items()), "random", seed)


def _spread(rng: DimRange, traced: int) -> list[int]:
    """All sizes of one dim, or `MOST_PER_DIM`, in an order of which every part is spread over the whole range."""
    values: Sequence[int] = rng.values()
    chance = random.Random(len(values))
    if len(values) > MOST_PER_DIM:
        ends = [*values[: MOST_PER_DIM // 8], *values[-4:]]
        values = ends + chance.sample(values[MOST_PER_DIM // 8 : -4], MOST_PER_DIM - len(ends))
    return chance.sample(kept := [v for v in values if v != traced], len(kept))


def _together(space: ShapeSpace, batch: Sequence[str]) -> Iterator[dict[str, int]]:
    """Sizes at which all dims but the batch are multiples of one number, or equal; then some drawn at random.

    Where a branch asks for several dims at once (`h % 8 == 0 and w % 8 == 0`, `h == w`), no dim alone shows it.
    """
    dims = [(n, r) for n, r in space.dims if n not in batch and r.min != r.max]
    if len(dims) < 2:
        return
    chance = random.Random(len(dims))
    for step in STEPS:
        lists = [_multiples(r, step) for _, r in dims]
        if all(lists):
            yield {n: chance.choice(values) for (n, _), values in zip(dims, lists, strict=True)}
    first, *others = (r for _, r in dims)
    shared = [v for v in first.values()[:MOST_SHARED] if all(v in r for r in others)]
    for size in chance.sample(shared, min(2, len(shared))):
        yield {n: size for n, _ in dims}
    for _ in range(DRAWN):
        yield {n: chance.choice(r.values()) for n, r in space.dims}


def _multiples(rng: DimRange, step: int) -> range:
    both = math.lcm(step, rng.multiple)
    return range(-(-rng.min // both) * both, rng.max + 1, both)


def _difference(job: Job, runner: OnnxRuntimeRunner, point: SamplePoint) -> OutputComparison | None:
    """What differs at a point by more than the module's own rounding, which is measured only when something does."""
    inputs = job.make(point)
    outputs = job.runner(inputs)
    sample = ReferenceSample(point, inputs, outputs, job.samples.floors_at(point, outputs))
    bad = first_failure(compare_at(runner, sample, job.request.tolerance))
    if bad is None or bad.max_abs is None or bad.max_abs == math.inf:
        return bad
    floors = job.samples.floors_at(point, outputs, own_errors(job.runner, sample))
    return first_failure(compare_at(runner, replace(sample, floors=floors), job.request.tolerance))


def scanned(job: Job, made: Attempt, edges: Sequence[Mapping[str, int]] = ()) -> Attempt:
    """The attempt, no longer equal when one of the scanned sizes differs.

    `edges` are sizes at which something is known to change, the other dims as traced. Stops after SECONDS, and with
    the less likely ones (all dims have had ENOUGH sizes each) after LESS_SECONDS.
    """
    if made.candidate is None or made.verdict is None:
        return made
    started, enough = time.monotonic(), ENOUGH * (len(job.request.space.dims) + 1)
    runner = OnnxRuntimeRunner(made.candidate.model)
    failed: tuple[OutputComparison, SamplePoint] | None = None
    for turn, point in enumerate(scan_points(job, edges)):
        if time.monotonic() - started > (SECONDS if turn < enough else LESS_SECONDS):
            break
        bad = _difference(job, runner, point)
        if bad is not None:
            failed = bad, point
            break
    job.seconds["scan"] = job.seconds.get("scan", 0.0) + time.monotonic() - started
    if failed is None:
        return made
    return replace(made, verdict=replace(made.verdict, failure=failed[0], at=failed[1]))
