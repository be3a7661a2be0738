"""How long a sweep will take and what it costs, from what earlier sweeps recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import fmean

from trtconv.sweep.plan.jobs import Job
from trtconv.sweep.plan.sections import KINDS


@dataclass(frozen=True)
class Estimate:
    """The jobs of one kind on one class of machines. `hours` of these resources; None where too little is known.

    `timed` jobs ran before or are like some that did; the hours are those of them, scaled to all.
    """

    kind: str
    resource_class: str
    jobs: int
    timed: int
    hours: float | None
    price: float | None


def estimate_jobs(
    jobs: Iterable[Job], seconds: Mapping[str, float], prices: Mapping[str, float]
) -> tuple[Estimate, ...]:
    """Estimates by kind and class of machines, in the order in which a cell walks through the kinds.

    `seconds` are those of jobs by id, when they last succeeded. A job that never ran is taken as the mean of those of
    its kind on the same model, else of its kind. `prices` are those of an hour, by GPU kind or `cpu`.
    """
    by_model: dict[tuple[str, str], list[float]] = {}
    by_kind: dict[str, list[float]] = {}
    groups: dict[tuple[str, str], list[Job]] = {}
    for job in jobs:
        groups.setdefault((job.kind, job.resource_class), []).append(job)
        if job.id in seconds:
            by_model.setdefault((job.kind, job.cell.model), []).append(seconds[job.id])
            by_kind.setdefault(job.kind, []).append(seconds[job.id])
    estimates = []
    for (kind, resource_class), members in sorted(groups.items(), key=lambda item: KINDS.index(item[0][0])):
        times = []
        for job in members:
            like = by_model.get((kind, job.cell.model)) or by_kind.get(kind)
            time = seconds.get(job.id, fmean(like) if like else None)
            if time is not None:
                times.append(time * (1.0 if job.accelerator else job.cpus))
        hours = fmean(times) * len(members) / 3600 if times else None
        price = hours * prices[resource_class] if hours is not None and resource_class in prices else None
        estimates.append(Estimate(kind, resource_class, len(members), len(times), hours, price))
    return tuple(estimates)
