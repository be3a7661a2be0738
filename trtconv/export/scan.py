"""Looking at many sizes, for files whose exporter does not know for which sizes they hold.

torch.export states the sizes at which its trace is valid, and refuses when that is less than the space. TorchScript
records one run and says nothing: a branch that only one size takes would not be seen by the few sample points.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from trtconv.core.reference import ReferenceSample
from trtconv.core.sampling import SamplePoint
from trtconv.export.attempt import Attempt, Job
from trtconv.export.proof import prove

MOST_PER_DIM = 48
SECONDS = 12.0


def scan_points(job: Job, edges: Sequence[tuple[str, int]]) -> Iterator[SamplePoint]:
    """The edges, then every size of each dim (spread evenly when there are many), the others as traced."""
    base, seed = dict(job.sizes), job.request.source.seed
    for name, value in edges:
        if value in job.request.space[name]:
            yield SamplePoint("scan", tuple({**base, name: value}.items()), "random", seed)
    for name, rng in job.request.space.dims:
        values = list(rng.values())
        for value in values[:: -(-len(values) // MOST_PER_DIM)]:
            if value != base[name]:
                yield SamplePoint("scan", tuple({**base, name: value}.items()), "random", seed)


def scanned(job: Job, made: Attempt, edges: Sequence[tuple[str, int]] = ()) -> Attempt:
    """The attempt, no longer equal when one of the scanned sizes differs. Stops after SECONDS.

    `edges` are sizes of single dims at which something is known to change.
    """
    if made.candidate is None or made.verdict is None:
        return made
    started, samples = time.monotonic(), []
    for point in scan_points(job, edges):
        if time.monotonic() - started > SECONDS:
            break
        inputs = job.make(point)
        samples.append(ReferenceSample(point, inputs, job.runner(inputs)))
    if not samples:
        return made
    found = prove(made.candidate.model, samples, job.request.tolerance)
    job.seconds["scan"] = job.seconds.get("scan", 0.0) + time.monotonic() - started
    if found.equal:
        return made
    return replace(made, verdict=replace(made.verdict, failure=found.failure, at=found.at))
