"""A fleet that exists on paper: jobs end when a simulated clock says so, and machines fail as a seed decides."""

from __future__ import annotations

import heapq
import random
from dataclasses import dataclass, field

from trtconv.sweep.workers.outcome import JobResult
from trtconv.sweep.workers.pool import TaskPlacement
from trtconv.sweep.workers.task import Task

# Median seconds of a job by kind, and how far it spreads (sigma of the logarithm): assumed, for networks of 1 to 50
# million weights; the fleet's size does not change the driver's own cost per job.
SECONDS = {"export": 60, "rewrite": 40, "type": 8, "check": 20, "build": 120, "engine": 20, "bench": 15}
SPREAD = 0.8
# What a fresh worker process of Ray costs before the job begins, in seconds; measured once on two busy cores.
WORKER_START_S = 0.7
VERDICT_SHARE = {
    "export": 0.02,
    "rewrite": 0.03,
    "type": 0.0,
    "check": 0.02,
    "build": 0.02,
    "engine": 0.01,
    "bench": 0.0,
}


@dataclass(frozen=True)
class Faults:
    """Shares of attempts that die or hang, and the mean seconds between two losses of one node."""

    died: float = 0.005
    hung: float = 0.001
    full: float = 0.001
    node_loss_s: float = 48 * 3600.0


@dataclass
class SimulatedPool:
    """Nodes of a class with so many slots each. `clock()` is the simulated time."""

    nodes: dict[str, tuple[int, int]]
    faults: Faults
    seed: int = 0
    now: float = 0.0
    busy_s: dict[str, float] = field(default_factory=dict)
    submitted: int = 0
    nodes_lost: int = 0

    def __post_init__(self) -> None:
        self._draw = random.Random(self.seed)
        self._events: list[tuple[float, int, str, JobResult]] = []
        self._free = {name: count * slots for name, (count, slots) in self.nodes.items()}
        self._queue: dict[str, list[tuple[Task, int]]] = {name: [] for name in self.nodes}
        self._running: dict[str, dict[str, int]] = {}
        self._next_loss = self._draw.expovariate(self._loss_rate())

    def _loss_rate(self) -> float:
        return sum(count for count, _ in self.nodes.values()) / self.faults.node_loss_s

    def clock(self) -> float:
        return self.now

    def probe(self, program, variables, placement: TaskPlacement) -> dict[str, str]:
        return {"gpu": placement.accelerator}

    def room(self, resource_class: str) -> int:
        count, slots = self.nodes[resource_class]
        in_hand = len(self._queue[resource_class]) + count * slots - self._free[resource_class]
        return max(0, 2 * count * slots + 1 - in_hand)

    def submit(self, task: Task, placement: TaskPlacement) -> None:
        name = placement.accelerator or "cpu"
        self.submitted += 1
        self._queue[name].append((task, self.submitted))
        self._start(name)

    def _start(self, name: str) -> None:
        while self._free[name] and self._queue[name]:
            task, number = self._queue[name].pop(0)
            self._free[name] -= 1
            node = f"{name}-{self._draw.randrange(self.nodes[name][0])}"
            seconds, outcome = self._draw_end(task)
            self._running.setdefault(node, {})[task.job] = number
            result = JobResult(task.job, outcome, f"{hash(task.job):x}", seconds=seconds, node=node)
            heapq.heappush(self._events, (self.now + WORKER_START_S + seconds, number, name, result))

    def _draw_end(self, task: Task) -> tuple[float, str]:
        seconds = SECONDS[task.kind] * self._draw.lognormvariate(0.0, SPREAD)
        chance = self._draw.random()
        for share, outcome in ((self.faults.died, "died"), (self.faults.full, "disk"), (self.faults.hung, "hung")):
            if chance < share:
                return (task.seconds if outcome == "hung" else seconds * self._draw.random()), outcome
            chance -= share
        return seconds, "accuracy" if chance < VERDICT_SHARE[task.kind] else "ok"

    def wait(self, seconds: float) -> list[JobResult]:
        """Go to the next event, and take what ends within a tenth of a second of it."""
        if not self._events:
            self.now += seconds
            return []
        if self._events[0][0] > self._next_loss:
            return self._lose_node()
        self.now = max(self.now, self._events[0][0])
        results = []
        while self._events and self._events[0][0] <= self.now + 0.1:
            _, number, name, result = heapq.heappop(self._events)
            if self._running[result.node].get(result.job) == number:
                del self._running[result.node][result.job]
                results.append(result)
                self._end(name, result.seconds)
        return results

    def _end(self, name: str, seconds: float) -> None:
        self.busy_s[name] = self.busy_s.get(name, 0.0) + seconds + WORKER_START_S
        self._free[name] += 1
        self._start(name)

    def _lose_node(self) -> list[JobResult]:
        """All jobs of one node are lost; another one takes its place at once."""
        self.now = max(self.now, self._next_loss)
        self._next_loss = self.now + self._draw.expovariate(self._loss_rate())
        nodes = [f"{name}-{i}" for name, (count, _) in self.nodes.items() for i in range(count)]
        node = self._draw.choice(nodes)
        jobs = self._running.pop(node, {})
        self.nodes_lost += 1
        results = [JobResult(job, "lost", node=node) for job in jobs]
        for _ in results:
            self._end(node.rpartition("-")[0], 0.0)
        return results

    def cancel(self) -> None:
        self._events.clear()

    def close(self) -> None:
        pass
