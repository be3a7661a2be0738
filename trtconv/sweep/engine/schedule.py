"""Which jobs can run now. No clock, no files, no processes: those are the driver's."""

from __future__ import annotations

import heapq
from collections import Counter

from trtconv.sweep.plan.jobs import JobGraph
from trtconv.sweep.workers.outcome import JobResult

# How long to wait before another attempt, in seconds, times two for each further one.
FIRST_PAUSE_S = 2.0
LONGEST_PAUSE_S = 300.0


class Schedule:
    """The state of each job of a graph: waiting, ready, running, finished or blocked by one that did not succeed.

    Of the ready jobs those that finish a cell come first, so that there is something to see early and little is
    open at a time. `retries` further attempts follow a fault; a verdict is final.
    """

    def __init__(self, graph: JobGraph, retries: int) -> None:
        self._graph = graph
        self._retries = retries
        self._order = {job: (-len(graph.jobs[job].needs), i) for i, job in enumerate(graph.jobs)}
        self._open_needs = {id: len(job.needs) for id, job in graph.jobs.items()}
        self._dependents: dict[str, list[str]] = {}
        for id, job in graph.jobs.items():
            for need in job.needs:
                self._dependents.setdefault(need, []).append(id)
        self._ready: dict[str, list[tuple[tuple[int, int], str]]] = {}
        self._later: list[tuple[float, str]] = []
        self._faults: Counter[str] = Counter()
        self.running: set[str] = set()
        self.results: dict[str, JobResult] = {}
        self.blocked: dict[str, str] = {}
        for id, count in self._open_needs.items():
            if not count:
                self._make_ready(id)

    @property
    def finished(self) -> bool:
        """True when nothing is left to do."""
        return len(self.results) + len(self.blocked) == len(self._graph.jobs)

    @property
    def classes(self) -> tuple[str, ...]:
        """The classes of machines for which a job is ready."""
        return tuple(name for name, jobs in self._ready.items() if jobs)

    def take(self, resource_class: str) -> str | None:
        """The next ready job of a class, now running; None when there is none."""
        ready = self._ready.get(resource_class)
        if not ready:
            return None
        job = heapq.heappop(ready)[1]
        self.running.add(job)
        return job

    def wake(self, now: float) -> None:
        """Make those ready again whose pause after a fault is over."""
        while self._later and self._later[0][0] <= now:
            self._make_ready(heapq.heappop(self._later)[1])

    def next_wake(self) -> float | None:
        """When the next pause is over."""
        return self._later[0][0] if self._later else None

    def settle(self, result: JobResult, now: float) -> bool:
        """Take a result; False when the job will be tried again."""
        self.running.discard(result.job)
        if result.is_fault and self._faults[result.job] < self._retries:
            pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** self._faults[result.job])
            self._faults[result.job] += 1
            heapq.heappush(self._later, (now + pause, result.job))
            return False
        self.results[result.job] = result
        for dependent in self._dependents.get(result.job, ()):
            if not result.ok:
                self._block(dependent, result.job)
                continue
            self._open_needs[dependent] -= 1
            if not self._open_needs[dependent] and dependent not in self.blocked:
                self._make_ready(dependent)
        return True

    def counts(self) -> Counter[str]:
        """How many jobs are in which state: ok, cached, failed (verdict or given up), blocked, running, waiting."""
        states: Counter[str] = Counter()
        for result in self.results.values():
            states["cached" if result.cached else "ok" if result.ok else "failed"] += 1
        states["blocked"], states["running"] = len(self.blocked), len(self.running)
        states["waiting"] = len(self._graph.jobs) - sum(states.values())
        return states

    def _make_ready(self, job: str) -> None:
        ready = self._ready.setdefault(self._graph.jobs[job].resource_class, [])
        heapq.heappush(ready, (self._order[job], job))

    def _block(self, job: str, cause: str) -> None:
        """Block a job; those behind it name the cause too, since they need it all the same."""
        if job not in self.blocked and job not in self.results:
            self.blocked[job] = cause
