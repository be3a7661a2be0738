"""`run_sweep` and `plan_sweep`: what `trtconv sweep` does, from the file to the atlas."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.errors import InvalidRequestError
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.text.brief import brief_repr
from trtconv.sweep.atlas.atlas import Atlas, write_atlas
from trtconv.sweep.engine.driver import Driver, SweepSetting, View
from trtconv.sweep.engine.verdicts import CellVerdict, judge_cells
from trtconv.sweep.ledger.ledger import Ledger, read_timings
from trtconv.sweep.plan.cells import Matrix, make_matrix, select_cells
from trtconv.sweep.plan.estimate import Estimate, estimate_jobs
from trtconv.sweep.plan.file import read_sweep
from trtconv.sweep.plan.jobs import JobGraph, make_jobs
from trtconv.sweep.plan.sections import SweepFile
from trtconv.sweep.store.storage import open_storage
from trtconv.sweep.store.store import Store
from trtconv.sweep.workers.outcome import JobResult
from trtconv.sweep.workers.pool import WorkerPool

RETRIES = ("", "failed", "faults")


@dataclass(frozen=True)
class SweepRequest:
    """A sweep. `only` are patterns of cells; `resume` goes on with the last sweep into `atlas`.

    `retry` runs again, in the last sweep, what did not succeed (`failed`) or what the machines spoilt (`faults`).
    `address` is that of a Ray cluster, None starts one here with `workers` CPUs (None: all).
    """

    file: Path
    atlas: Path
    only: tuple[str, ...] = ()
    resume: bool = False
    retry: str = ""
    address: str | None = None
    workers: int | None = None


@dataclass(frozen=True)
class Plan:
    """What would be done. `estimates` are by kind of job and class of machines."""

    sweep: SweepFile
    matrix: Matrix
    graph: JobGraph
    estimates: tuple[Estimate, ...]


@dataclass(frozen=True)
class SweepResult:
    """What came out: the verdict of each cell, the atlas, and whether the sweep was ended before its time."""

    verdicts: tuple[CellVerdict, ...]
    atlas: Atlas
    interrupted: bool = False

    __repr__ = brief_repr


def plan_sweep(request: SweepRequest) -> Plan:
    """The jobs of a sweep, with the hours that earlier sweeps into the same atlas let expect; nothing is written.

    Raises InvalidRequestError for a sweep file that is wrong, and for `only` patterns that match nothing.
    """
    sweep = read_sweep(request.file)
    matrix = make_matrix(sweep, request.file.absolute().parent)
    matrix = Matrix(matrix.models, select_cells(matrix.cells, request.only), matrix.notes)
    graph = make_jobs(sweep, matrix)
    return Plan(sweep, matrix, graph, estimate_jobs(graph.jobs.values(), read_timings(request.atlas), sweep.prices))


def run_sweep(
    request: SweepRequest,
    view: View,
    progress: Progress | None = None,
    *,
    open_pool: Callable[[], WorkerPool] | None = None,
) -> SweepResult:
    """Run a sweep, or go on with the last one, and write the atlas.

    An interrupt (Ctrl-C, SIGTERM) ends the running jobs; the atlas shows what there is, and `interrupted` is set.
    Raises InvalidRequestError and MissingDependencyError before anything runs; a model that is wrong is a verdict.
    """
    progress = progress or SilentProgress()
    if request.retry not in RETRIES:
        raise InvalidRequestError(f"cannot retry '{request.retry}'", hint="failed or faults")
    # Before the atlas is made: what is wrong with the file leaves no folder.
    plan = plan_sweep(request)
    with Ledger(request.atlas) as ledger:
        for note in plan.matrix.notes:
            progress.warn(note)
        location = store_location(plan.sweep.sweep.store, request.atlas)
        store = Store(open_storage(location))
        sweep, earlier = _begin(request, plan, ledger, progress)
        pool = open_pool() if open_pool is not None else _ray_pool(request)
        folder = request.file.absolute().parent
        setting = SweepSetting(plan.matrix.models, plan.sweep.environments, location, folder, plan.sweep.sweep.retries)
        ended = _drive(Driver(plan.graph, setting, pool, store, ledger, sweep, view), earlier, ledger, sweep, pool)
        verdicts = judge_cells(plan.graph, ledger.results(sweep))
        atlas = write_atlas(request.atlas, plan.sweep, plan.graph.jobs, verdicts, ledger, sweep, store)
    return SweepResult(verdicts, atlas, not ended)


def _begin(request: SweepRequest, plan: Plan, ledger: Ledger, progress: Progress) -> tuple[int, dict[str, JobResult]]:
    """The number of the sweep, and the results that it has already."""
    sweeps = ledger.sweeps()
    record = {"name": plan.sweep.sweep.name, "cells": [cell.id for cell in plan.matrix.cells]}
    if not (request.resume or request.retry):
        if sweeps and sweeps[0].state != "ended":
            progress.warn("the last sweep was not finished; --resume goes on with it, this is a new one")
        return ledger.begin(record, time.time()), {}
    if not sweeps:
        if request.retry:
            raise InvalidRequestError(f"there is no sweep in '{request.atlas}'", hint="leave out --retry")
        return ledger.begin(record, time.time()), {}
    last = sweeps[0].id
    ledger.resume(last, record)
    results = ledger.results(last)
    if request.retry == "failed":
        results = {job: r for job, r in results.items() if r.ok}
    elif request.retry == "faults":
        results = {job: r for job, r in results.items() if not r.is_fault}
    return last, results


def _drive(driver: Driver, earlier: dict[str, JobResult], ledger: Ledger, sweep: int, pool: WorkerPool) -> bool:
    """Run the jobs; True where they came to their end, and not to an interrupt. The ledger knows which."""
    ended = False
    try:
        with suppress(KeyboardInterrupt):
            driver.run(earlier)
            ended = True
    finally:
        ledger.end(sweep, "ended" if ended else "interrupted", time.time())
        pool.close()
    return ended


def store_location(text: str, atlas: Path) -> str:
    """The store as workers see it: a URL as it is, a folder as an absolute path."""
    return text if "://" in text else os.path.abspath(atlas / text)


def _ray_pool(request: SweepRequest) -> WorkerPool:
    from trtconv.sweep.workers.ray_pool import RayPool

    return RayPool(request.address, request.workers, request.atlas / ".ray")
