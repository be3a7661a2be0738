"""Samples on each path that a module takes by its sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress

from trtconv.core.effort import Effort
from trtconv.core.errors import TrtconvError
from trtconv.export.branches.by_size.size_paths import SizePaths
from trtconv.export.exporters.attempt import Attempt, ExportTask, compared_at_samples
from trtconv.proof.points import SamplePoint, has_highest
from trtconv.proof.reference import ReferenceSample

# Paths by size of which the reference keeps a sample.
MOST_PATHS = 8
# What running the module at further values may take on the paths, and beside them; each is compared in twice as long.
SECONDS, LEAST_RUNS = 2.0, 6


def path_sizes(paths: SizePaths) -> tuple[Mapping[str, int], ...]:
    """Sizes on each path through the module, where code makes several."""
    if not paths.decides:
        return ()
    return paths.points[: min(paths.paths, MOST_PATHS) if paths.paths > 1 else 0]


def compared_at_sizes(
    job: ExportTask, attempt: Attempt, sizes: Sequence[Mapping[str, int]]
) -> tuple[ExportTask, Attempt]:
    """The job with a sample at each of these sizes, and the attempt compared there.

    What comes after the export is compared there too.
    """
    return compared_at_samples(job, attempt, _samples(job, "random", sizes))


def compared_at_large_values(
    job: ExportTask, attempt: Attempt, paths: SizePaths, others: Sequence[Mapping[str, int]] = ()
) -> tuple[ExportTask, Attempt]:
    """The attempt compared at large values, the highest ones and NaN on each path, and at `others`.

    What a module does at some sizes alone (`if x.shape[0] == 1: x = x.clamp(max=50)`) shows there at times only. On the
    paths these are samples from then on, beside them those at which the file differs.
    """
    chosen, kinds = path_sizes(paths), _further_kinds(job)
    effort = Effort(SECONDS, LEAST_RUNS)
    samples = [sample for kind in kinds for sample in _samples(job, kind, chosen, effort)]
    job, attempt = compared_at_samples(job, attempt, samples)
    beside = _beside(job, [*chosen, *others, *(paths.points[len(chosen) :] if paths.decides else ())])
    effort = Effort(SECONDS, LEAST_RUNS)
    for kind in kinds:
        if not attempt.equal:
            break
        tried, after = compared_at_samples(job, attempt, _samples(job, kind, beside, effort))
        if not after.equal:
            job, attempt = tried, after
    return job, attempt


def _samples(
    job: ExportTask, kind: str, sizes: Iterable[Mapping[str, int]], effort: Effort | None = None
) -> list[ReferenceSample]:
    """What the module gives at these sizes, but at points that are samples."""
    present = {(s.point.dims, s.point.values) for s in job.samples.items}
    samples: dict[SamplePoint, ReferenceSample] = {}
    for one in sizes:
        point = job.point(one, kind)
        if point in samples or (point.dims, kind) in present:
            continue
        if effort is not None and not effort.step():
            break
        # A module may refuse values that nobody feeds.
        with suppress(TrtconvError) if kind != "random" else nullcontext():
            inputs = job.make(point)
            samples[point] = ReferenceSample(point, inputs, job.runner(inputs))
    return list(samples.values())


def _beside(job: ExportTask, points: Sequence[Mapping[str, int]]) -> list[Mapping[str, int]]:
    """The points; and those with a size of 1 where one has none, and with one size of 1 alone where one has several."""
    base, space = dict(job.sizes), job.request.space
    sizes: list[Mapping[str, int]] = [dict(p) for p in points]
    for point in points:
        empty = [n for n, v in point.items() if v == 0 and space[n].max > 0]
        ones = [n for n, v in point.items() if v == 1 != base[n]]
        sizes += [{**point, **dict.fromkeys(empty, 1)}] if empty else []
        sizes += [{**base, n: 1} for n in (base if ones else ()) if space[n].min <= 1 != base[n]]
    return sizes


def _further_kinds(job: ExportTask) -> tuple[str, ...]:
    """The values to feed beside random ones; inputs that a user's function makes are left as they are."""
    specs = job.request.inputs
    if job.request.source.sample is not None:
        return ()
    free = any(s.dtype.kind == "float" and s.value_range is None for s in specs)
    return (*(("large", "nan") if free else ()), *(("full",) if any(map(has_highest, specs)) else ()))
