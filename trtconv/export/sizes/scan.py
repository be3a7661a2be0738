"""Looking at many sizes, for files whose exporter does not know for which sizes they hold.

torch.export states the sizes at which its trace is valid, and refuses when that is less than the space. TorchScript
records one run and says nothing: a branch that only one size takes would not be seen by the few sample points. What
either computes in floats is rounded to FP32 in the file, and `int(h * 0.29)` then is another number at a single size.

So the module's own decisions by size are followed over the whole space (`branches/by_size/size_paths.py`), the file's
floats are evaluated over all of it (`file_sizes.py`), and file and module are compared where either says that something
changes; then at sizes of each dim alone, and at joint sizes in an order made for coverage, within a budget of seconds.
"""

from __future__ import annotations

import itertools
import math
import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from trtconv.core.effort import Effort
from trtconv.core.model.file import load_structure
from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.space import DimRange, ShapeSpace
from trtconv.export.branches.by_size.size_paths import TOO_MANY_PATHS, SizePaths
from trtconv.export.exporters.attempt import Attempt, ExportTask
from trtconv.export.module.outputs import require_same_outputs
from trtconv.export.sizes.file_sizes import note_uncompared
from trtconv.proof.comparison import first_failure
from trtconv.proof.joint_sizes import covering_sizes
from trtconv.proof.noise.rounding import own_errors
from trtconv.proof.original import Run
from trtconv.proof.points import SamplePoint, batch_dims
from trtconv.proof.proving import compare_at
from trtconv.proof.reference import ReferenceSample

MOST_PER_DIM = 1024
# Sizes of each dim, and joint ones, that are compared as long as the first budget lasts.
ENOUGH = 48
# At sizes where something is known to change; at others that are likely to tell; at the rest.
EDGE_SECONDS = 12.0
SECONDS = 8.0
LESS_SECONDS = 2.0
# At the rest of the sizes of a module that makes plain numbers of sizes, each of which may be the one that it asks for.
UNFOLLOWED_SECONDS = 20.0
# Points of each kind that are compared whatever they take.
LEAST = 4

Sizes = Mapping[str, int]


def scan_points(
    job: ExportTask, edges: Iterable[Sizes], dims: frozenset[str] | None = None
) -> Iterator[tuple[str, SamplePoint]]:
    """The edges; then in turns a size of each dim, the others as traced, and joint sizes in an order made for coverage.

    Each point comes with what it is: `edge`, `dim` or `joint`. A dim with more than `MOST_PER_DIM` sizes gives those
    next to its ends, and others drawn at random: an even step would show only odd ones, or multiples of something.
    With `dims` the other ones stay as traced, but at the edges.
    """
    base, seed, space = dict(job.sizes), job.request.source.seed, job.request.space
    emitted: set[tuple[tuple[str, int], ...]] = set()
    moving = ShapeSpace(tuple((n, r) for n, r in space.dims if dims is None or n in dims))
    joint = covering_sizes(moving, batch_dims(job.request.inputs))
    lists = [[{n: v} for v in _spread(r, base[n])] for n, r in moving.dims]
    turns = (s for turn in itertools.zip_longest(*lists) for s in turn if s is not None)
    # In turns for as long as there are single ones, then the joint ones alone.
    rest: Iterator[tuple[str, Sizes]] = _alternate(turns, joint)
    for kind, sizes in itertools.chain((("edge", e) for e in edges), rest):
        whole = tuple({**base, **sizes}.items())
        if whole not in emitted and space.contains(dict(whole)):
            emitted.add(whole)
            yield kind, SamplePoint("scan", whole, "random", seed)


def _alternate(single: Iterator[Sizes], joint: Iterator[Sizes]) -> Iterator[tuple[str, Sizes]]:
    for alone in single:
        yield "dim", alone
        yield from (("joint", s) for s in itertools.islice(joint, 1))
    yield from (("joint", s) for s in joint)


def _spread(rng: DimRange, traced: int) -> list[int]:
    """All sizes of one dim, or `MOST_PER_DIM`, in an order of which every part is spread over the whole range."""
    values: Sequence[int] = rng.values()
    chance = random.Random(len(values))
    if len(values) > MOST_PER_DIM:
        ends = [*values[: MOST_PER_DIM // 8], *values[-4:]]
        values = ends + chance.sample(values[MOST_PER_DIM // 8 : -4], MOST_PER_DIM - len(ends))
    return chance.sample(others := [v for v in values if v != traced], len(others))


def _difference(job: ExportTask, runner: Run, point: SamplePoint) -> OutputComparison | None:
    """What differs at a point by more than the module's own rounding, which is measured only when something does.

    Raises AccuracyError where the module returns other outputs there, which no file can.
    """
    inputs = job.make(point)
    outputs = job.runner(inputs)
    sample = ReferenceSample(point, inputs, outputs)
    require_same_outputs((job.samples.items[0], sample))
    sample = replace(sample, floors=job.samples.floors_at(point, outputs))
    bad = first_failure(compare_at(runner, sample, job.request.tolerance))
    if bad is None or bad.max_abs is None or bad.max_abs == math.inf:
        return bad
    for errors in own_errors(job.runner, sample):
        floors = job.samples.floors_at(point, outputs, errors)
        bad = first_failure(compare_at(runner, replace(sample, floors=floors), job.request.tolerance))
        if bad is None:
            break
    return bad


def scan_sizes(
    job: ExportTask,
    result: Attempt,
    paths: SizePaths,
    edges: Sequence[Sizes] = (),
    dims: frozenset[str] | None = None,
) -> Attempt:
    """The attempt with what was covered; no longer equal when one of the scanned sizes differs.

    `edges` are sizes at which something is known to change, the other dims as traced; `paths` has more. Beside those
    only sizes of `dims` are moved: of all where that is None, or where the module looks sizes up in a table, and of
    none for a file whose exporter proved its trace for the whole space.
    """
    if result.candidate is None or result.verdict is None or result.runs is None:
        return result
    started = time.monotonic()
    runner = result.runs.model()
    tried = {s.point.dims for s in job.samples.items}
    failed: tuple[OutputComparison, SamplePoint] | None = None
    rest = UNFOLLOWED_SECONDS if TOO_MANY_PATHS in paths.obstacle else LESS_SECONDS
    limits = _Limits(dims != frozenset() or bool(paths.tables), bool(paths.tables), len(job.request.space.dims), rest)
    for kind, point in scan_points(job, [*paths.points, *edges], None if paths.tables else dims):
        if not limits.allow(kind):
            if kind == "edge":
                continue
            break
        if point.dims in tried:
            continue
        bad = _difference(job, runner, point)
        tried.add(point.dims)
        if bad is not None:
            failed = bad, point
            break
    job.seconds["scan"] = job.seconds.get("scan", 0.0) + time.monotonic() - started
    coverage = paths.coverage(len(tried))
    if failed is None:
        graph = load_structure(result.candidate.model).graph
        note = note_uncompared(graph, job.request.inputs, job.request.space, tried)
        return replace(result, sizes=coverage, uncompared=note)
    return replace(result, sizes=coverage, verdict=replace(result.verdict, failure=failed[0], at=failed[1]))


class _Limits:
    """Until when points of each kind are compared."""

    def __init__(self, thorough: bool, tables: bool, dims: int, rest: float) -> None:
        self._edges, self._likely, self._rest = (Effort(s, LEAST) for s in (EDGE_SECONDS, SECONDS, rest))
        self._thorough, self._tables = thorough, tables
        self._enough, self._turn = ENOUGH * (dims + 1), 0

    def allow(self, kind: str) -> bool:
        """True when a point of this kind may still be compared."""
        if kind == "edge":
            return self._edges.step()
        if not self._thorough:
            return False
        self._turn += 1
        likely = self._turn < self._enough or self._tables
        return (self._likely if likely else self._rest).step()
