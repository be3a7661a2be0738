"""The loop of a sweep: hand out what is ready, write down what came back, until nothing is left.

The order of two things decides what a kill -9 can cost. A worker publishes its result in the store before it reports,
and the driver asks the store before it hands a job out: work that was published is never done again, whether or not
the ledger heard of it. The ledger is written before a result has any consequence.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol

from trtconv.core.errors import TrtconvError
from trtconv.sweep.engine.schedule import Schedule
from trtconv.sweep.ledger.ledger import Ledger
from trtconv.sweep.plan.cells import Model
from trtconv.sweep.plan.commands import inputs_of, steps_of, uses_timings
from trtconv.sweep.plan.jobs import Job, JobGraph
from trtconv.sweep.plan.sections import EXPORT, EnvironmentSection
from trtconv.sweep.store.keys import KeyMaker
from trtconv.sweep.store.store import Store, source_key
from trtconv.sweep.workers.outcome import OK, JobResult
from trtconv.sweep.workers.pool import WorkerPool, placement_of
from trtconv.sweep.workers.task import OWN_PROGRAM, Task

# The longest that the driver sits still, in seconds: the view is drawn again as often.
TICK_S = 0.5


class View(Protocol):
    """Sees a sweep go on."""

    def event(self, result: JobResult, *, final: bool) -> None:
        """An attempt ended; `final` when it is not tried again."""

    def tick(self, schedule: Schedule) -> None:
        """Some time went by."""


class SilentView:
    """Shows nothing, where a program waits for the result."""

    def event(self, result: JobResult, *, final: bool) -> None:
        """Nothing."""

    def tick(self, schedule: Schedule) -> None:
        """Nothing."""


@dataclass(frozen=True)
class SweepSetting:
    """What the jobs of a sweep have in common. `store` and `base` are seen alike by driver and workers."""

    models: Mapping[str, Model]
    environments: Mapping[str, EnvironmentSection]
    store: str
    base: Path
    retries: int


@dataclass
class Driver:
    """Runs the jobs of a graph on a pool. `clock` gives seconds since the epoch."""

    graph: JobGraph
    setting: SweepSetting
    pool: WorkerPool
    store: Store
    ledger: Ledger
    sweep: int
    view: View
    clock: Callable[[], float] = time.time
    schedule: Schedule = field(init=False)
    _keys: dict[str, str] = field(init=False, default_factory=dict)
    _nodes: dict[str, str] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        """Begin with nothing done."""
        self.schedule = Schedule(self.graph, self.setting.retries)

    def run(self, earlier: Mapping[str, JobResult]) -> None:
        """Run until nothing is left; `earlier` are results of this sweep that count if their keys still hold.

        Raises TrtconvError when the machines cannot run jobs at all, and KeyboardInterrupt; running jobs end then.
        """
        keys = KeyMaker(self.setting.models, self._probe_classes(), self.setting.base)
        try:
            while not self.schedule.finished:
                self.schedule.wake(self.clock())
                self._hand_out(keys, earlier)
                self._settle(self.pool.wait(self._patience()))
                self.view.tick(self.schedule)
        except BaseException:
            self.pool.cancel()
            raise

    def _patience(self) -> float:
        wake = self.schedule.next_wake()
        if wake is None or self.schedule.running:
            return TICK_S
        return min(TICK_S, max(0.0, wake - self.clock()))

    def _probe_classes(self) -> dict[tuple[str, str], Mapping[str, str]]:
        """What is installed for each class of machines and target; equal installations are asked once."""
        versions: dict[tuple[str, str], Mapping[str, str]] = {}
        answers: dict[Any, Mapping[str, str]] = {}
        for job in self.graph.jobs.values():
            pair = (job.resource_class, job.cell.target)
            if pair in versions:
                continue
            program, section = self._program(job), self._environment(job)
            same = (job.resource_class, program, repr(section))
            if same not in answers:
                # As little of a machine as will do.
                placement = placement_of(replace(job, cpus=min(1.0, job.cpus), memory=0), section.runtime_env, "")
                installed = self.pool.probe(program, self._variables(job), placement)
                # Whatever GPUs the node has that answered: jobs of this class see none.
                gpu = {} if job.accelerator else {"gpu": ""}
                # What a file asks for by a variable decides as an option does.
                answers[same] = {**installed, **gpu, "environment": _environment_text(section)}
            versions[pair] = answers[same]
        return versions

    def _environment(self, job: Job) -> EnvironmentSection:
        return self.setting.environments.get(job.cell.target or EXPORT, EnvironmentSection())

    def _program(self, job: Job) -> tuple[str, ...]:
        return tuple(self._environment(job).command) or OWN_PROGRAM

    def _hand_out(self, keys: KeyMaker, earlier: Mapping[str, JobResult]) -> None:
        """Give each class of machines as much as it has room for; what is done already is settled at once."""
        settled: list[JobResult] = []
        handed: list[tuple[Task, Job]] = []
        for name in self.schedule.classes:
            room = self.pool.room(name)
            while room > 0 and (id := self.schedule.take(name)) is not None:
                job = self.graph.jobs[id]
                result, key = self._answer(job, keys, earlier)
                if result is not None:
                    settled.append(result)
                    continue
                handed.append((self._task(job, key, keys), job))
                room -= 1
        if handed:
            self.ledger.start(self.sweep, [job.id for _, job in handed], self.clock())
        for task, job in handed:
            section = self._environment(job)
            self.pool.submit(task, placement_of(job, section.runtime_env, self._nodes.get(job.id, "")))
        fresh = [r for r in settled if r is not earlier.get(r.job)]
        if fresh:
            self.ledger.record(self.sweep, fresh, self.clock())
        for result in settled:
            self._finish(result)

    def _answer(self, job: Job, keys: KeyMaker, earlier: Mapping[str, JobResult]) -> tuple[JobResult | None, str]:
        """The result of a job that need not run, and its key; an export's is known with what it read the last time."""
        try:
            key = keys.key(job, self._keys)
        except (OSError, TrtconvError) as error:
            # A file of the model is gone or broken: a verdict on that model, the others go on.
            return JobResult(job.id, "usage", message=str(error), exit_code=2), ""
        full = self._full_key(key, keys) if job.kind == "export" else key
        previous = earlier.get(job.id)
        if previous is not None and not previous.is_fault and not previous.ok and previous.key == key:
            return previous, key
        stored = self.store.result(full) if full else None
        if stored is None:
            return None, key
        if previous is not None and previous.ok and previous.key == full:
            return previous, key
        files = tuple((f.name, f.sha256, f.size) for f in stored.files)
        return JobResult(job.id, OK, full, files=files, facts=stored.facts, cached=True), key

    def _full_key(self, key: str, keys: KeyMaker) -> str:
        """The key of an export whose sources are what they were, or empty."""
        for sources in self.store.sources(key):
            if all(keys.digest(self.setting.base / path) == digest for path, digest in sources.items()):
                return source_key(key, sources)
        return ""

    def _task(self, job: Job, key: str, keys: KeyMaker) -> Task:
        steps = tuple(s.as_dict() for s in steps_of(job, self.setting.models[job.cell.model]))
        return Task(
            job.id,
            job.kind,
            key,
            self._program(job),
            steps,
            tuple(self._keys[n] for n in job.reads),
            self.setting.store,
            str(self.setting.base),
            job.seconds,
            self._variables(job),
            keys.scope(job) if uses_timings(job) else "",
            inputs_of(job),
        )

    def _variables(self, job: Job) -> dict[str, str]:
        """What is added to the environment; a job without a GPU of its own must not disturb what runs on one."""
        hidden = {} if job.accelerator else {"CUDA_VISIBLE_DEVICES": ""}
        own = self.setting.models[job.cell.model].variables if job.kind == EXPORT else ()
        return {**hidden, **self._environment(job).variables, **dict(own)}

    def _settle(self, results: list[JobResult]) -> None:
        if results:
            self.ledger.record(self.sweep, results, self.clock())
        for result in results:
            self._finish(result)

    def _finish(self, result: JobResult) -> None:
        if result.ok:
            self._keys[result.job] = result.key
        elif result.is_fault:
            self._nodes[result.job] = result.node
        final = self.schedule.settle(result, self.clock())
        self.view.event(result, final=final)


def _environment_text(section: EnvironmentSection) -> str:
    """The variables of an environment, and what Ray makes of one; its program is told by its versions."""
    return json.dumps([dict(section.variables), dict(section.runtime_env)], sort_keys=True, default=str)
