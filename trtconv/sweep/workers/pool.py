"""What the driver needs of the machines that do the work."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from trtconv.sweep.plan.jobs import Job
from trtconv.sweep.workers.outcome import JobResult
from trtconv.sweep.workers.task import Task


@dataclass(frozen=True)
class TaskPlacement:
    """What a task needs of its machine. `avoid` is the id of a node on which it met a fault, or empty."""

    cpus: float
    memory: int = 0
    accelerator: str = ""
    runtime_env: Mapping[str, Any] | None = None
    avoid: str = ""


def placement_of(job: Job, runtime_env: Mapping[str, Any] | None, avoid: str) -> TaskPlacement:
    """The placement of a job."""
    return TaskPlacement(job.cpus, job.memory, job.accelerator, runtime_env, avoid)


class WorkerPool(Protocol):
    """Workers. All methods but `wait` return at once."""

    def probe(self, program: tuple[str, ...], variables: Mapping[str, str], placement: TaskPlacement) -> dict[str, str]:
        """What is installed where tasks of a placement run. Raises TrtconvError when there is no such machine."""

    def room(self, resource_class: str) -> int:
        """How many more tasks of a class should be handed over now, so that no machine waits."""

    def submit(self, task: Task, placement: TaskPlacement) -> None:
        """Hand a task over."""

    def wait(self, seconds: float) -> list[JobResult]:
        """The tasks that ended, after at most so long; a task is reported once. A lost worker is a result."""

    def cancel(self) -> None:
        """End all tasks that are still running."""

    def close(self) -> None:
        """Let the machines go; what was started for this pool is stopped."""
