"""Ray does the work: a task in a fresh process each, on a machine that has what it needs.

Without an address Ray is started on this machine for the length of the sweep: no dashboard, no usage statistics, its
files in a private folder. Ray's own retries are off, since it cannot tell a verdict from a fault.
"""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, TrtconvError
from trtconv.core.files.private_folder import belongs_to_current_user
from trtconv.core.text.error_text import first_line
from trtconv.sweep.workers.outcome import JobResult, result_from
from trtconv.sweep.workers.pool import TaskPlacement
from trtconv.sweep.workers.task import Task, probe_program, run_task

# Short, since the sockets below it may have names of 107 bytes at the most.
PREFIX = "tcray-"
PROBE_SECONDS = 300.0
# Ray gives its own processes 15 seconds to come up, which a busy machine may need for their imports alone.
STARTS = 2
# How long the processes of a Ray that was stopped may take to end.
LEAVING_SECONDS = 5.0
# Results are plain data of a few KiB; Ray's smallest store will do.
OBJECT_STORE_BYTES = 128 << 20


class RayPool:
    """A cluster at `address`, or a Ray of our own with `cpus` CPUs (None: all of this machine).

    `marker` is a file that names our Ray's folder, so that a later sweep can remove it after a kill -9. Raises
    MissingDependencyError without ray, InvalidRequestError when there is no cluster at the address.
    """

    def __init__(self, address: str | None, cpus: int | None, marker: Path) -> None:
        # Read when ray is imported, and by the processes that it starts.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        try:
            import ray
        except ImportError as error:
            raise MissingDependencyError("a sweep needs ray", hint="pip install ray") from error
        self._ray = ray
        self._marker = marker
        self._folder: Path | None = None
        self._tasks: dict[Any, tuple[str, str]] = {}
        self._functions: dict[str, Any] = {}
        # Ray takes SIGTERM for itself.
        handler = signal.getsignal(signal.SIGTERM)
        if address:
            self._join(address)
        else:
            self._start(cpus)
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
        # max_calls=1: what a task loaded, set or leaked ends with its process.
        self._run = ray.remote(max_calls=1, max_retries=0)(_run_remote)
        self._probe = ray.remote(max_calls=1, max_retries=0)(probe_program)

    def _join(self, address: str) -> None:
        try:
            self._ray.init(address=address, log_to_driver=False, logging_level="ERROR")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InvalidRequestError(
                f"there is no Ray cluster at '{address}': {first_line(error)}", hint="`ray status` shows one"
            ) from error

    def _start(self, cpus: int | None) -> None:
        remains = remove_marked(self._marker)
        self._folder = Path(tempfile.mkdtemp(prefix=PREFIX))
        self._marker.write_text("\n".join([*remains, str(self._folder)]))
        for attempt in range(STARTS):
            try:
                self._ray.init(
                    address="local",
                    num_cpus=cpus,
                    include_dashboard=False,
                    log_to_driver=False,
                    logging_level="ERROR",
                    object_store_memory=OBJECT_STORE_BYTES,
                    # Ray opens its own folder to everybody; the one above keeps others out.
                    _temp_dir=str(self._folder / "r"),
                )
                return
            except Exception as error:
                # Ray raises a bare Exception when its processes do not answer in its own 15 seconds.
                reason = first_line(error) or type(error).__name__
                self._ray.shutdown()
                if attempt + 1 < STARTS:
                    continue
                self.close()
                raise TrtconvError(
                    f"Ray does not start on this machine: {reason}",
                    hint="the machine may be too busy; TMPDIR has to be a short path with free space",
                ) from error

    def probe(self, program: tuple[str, ...], variables: Mapping[str, str], placement: TaskPlacement) -> dict[str, str]:
        """Ask a machine of the placement. Raises InvalidRequestError when none answers, or its trtconv does not run."""
        reference = self._probe.options(**self._options(placement)).remote(program, dict(variables))
        kind = placement.accelerator or "CPU"
        try:
            versions: dict[str, str] = self._ray.get(reference, timeout=PROBE_SECONDS)
        except self._ray.exceptions.GetTimeoutError as error:
            self._ray.cancel(reference, force=True)
            raise InvalidRequestError(
                f"no machine with {kind} answered within {PROBE_SECONDS:g} s",
                hint="`ray status` lists the machines; `trtconv help sweep` says how to name a GPU",
            ) from error
        except self._ray.exceptions.RayError as error:
            reason = str(error).strip().splitlines()[-1]
            raise InvalidRequestError(f"a worker for {kind} cannot run trtconv: {reason}") from error
        return versions

    def room(self, resource_class: str) -> int:
        """Twice what the cluster can run at once, less what was handed over."""
        resources = self._ray.cluster_resources()
        if resource_class == "cpu":
            slots = resources.get("CPU", 1.0)
        else:
            # Ray gives a machine one unit of the kind, however many GPUs it has.
            slots = resources.get("GPU", 1.0)
        handed = sum(1 for name, _ in self._tasks.values() if name == resource_class)
        return max(0, int(2 * slots) + 1 - handed)

    def submit(self, task: Task, placement: TaskPlacement) -> None:
        """Hand a task over."""
        reference = self._run.options(**self._options(placement)).remote(vars(task))
        self._tasks[reference] = (placement.accelerator or "cpu", task.job)

    def wait(self, seconds: float) -> list[JobResult]:
        """The tasks that ended."""
        if not self._tasks:
            time.sleep(min(seconds, 0.05))
            return []
        pending = list(self._tasks)
        try:
            ready, rest = self._ray.wait(pending, num_returns=1, timeout=seconds, fetch_local=False)
            if ready and rest:
                more, _ = self._ray.wait(rest, num_returns=len(rest), timeout=0, fetch_local=False)
                ready += more
        except self._ray.exceptions.RayError as error:
            raise TrtconvError(
                f"the connection to Ray was lost: {first_line(error) or type(error).__name__}",
                hint="--resume goes on when Ray is there again",
            ) from error
        return [self._result(reference) for reference in ready]

    def _result(self, reference: Any) -> JobResult:
        _, job = self._tasks.pop(reference)
        errors = self._ray.exceptions
        try:
            return result_from(self._ray.get(reference))
        except (errors.OutOfMemoryError, errors.WorkerCrashedError, errors.LocalRayletDiedError) as error:
            return JobResult(job, "died", message=first_line(error) or type(error).__name__)
        except errors.RayTaskError as error:
            return JobResult(job, "died", message=str(error).strip().splitlines()[-1])
        except errors.RayError as error:
            return JobResult(job, "lost", message=first_line(error) or type(error).__name__)

    def cancel(self) -> None:
        """Kill the workers of all tasks; the commands that they run end with them."""
        for reference in list(self._tasks):
            with suppress(Exception):
                self._ray.cancel(reference, force=True)
        self._tasks.clear()

    def close(self) -> None:
        """Leave the cluster; stop our own Ray and remove its folder."""
        self._ray.shutdown()
        if self._folder is not None:
            end = time.monotonic() + LEAVING_SECONDS
            while (remains := remove_marked(self._marker)) and time.monotonic() < end:
                time.sleep(0.1)
            self._marker.write_text("\n".join(remains))
            if not remains:
                self._marker.unlink()

    def _options(self, placement: TaskPlacement) -> dict[str, Any]:
        options: dict[str, Any] = {"num_cpus": placement.cpus}
        if placement.memory:
            options["memory"] = placement.memory
        if placement.accelerator:
            # The whole GPU: builds beside each other distort what the builder measures.
            options |= {"num_gpus": 1, "accelerator_type": placement.accelerator}
        if placement.runtime_env:
            options["runtime_env"] = dict(placement.runtime_env)
        other = self._other_node(placement) if placement.avoid else None
        if other is not None:
            from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

            options["scheduling_strategy"] = NodeAffinitySchedulingStrategy(other, soft=True)
        return options

    def _other_node(self, placement: TaskPlacement) -> str | None:
        """A node that could run the placement and is not the one to avoid; None where that is the only one."""
        needs = {"CPU": placement.cpus, **({"GPU": 1.0} if placement.accelerator else {})}
        if placement.accelerator:
            needs[f"accelerator_type:{placement.accelerator}"] = 0.001
        for node in self._ray.nodes():
            fits = all(node["Resources"].get(name, 0.0) >= amount for name, amount in needs.items())
            if node["Alive"] and fits and placement.avoid not in (node["NodeID"], node["NodeManagerHostname"]):
                return str(node["NodeID"])
        return None


def _run_remote(task: dict[str, Any]) -> dict[str, Any]:
    """`run_task` in a worker."""
    return run_task(Task(**task)).as_dict()


def remove_marked(marker: Path) -> list[str]:
    """Remove the folders of Rays whose drivers were killed, only those of ours, by name and owner; returns what stays.

    A Ray's processes outlive a killed driver by some seconds, and one that is about to start then makes its folder
    anew: the folder stays until nobody names it.
    """
    try:
        names = marker.read_text().splitlines()
    except OSError:
        return []
    commands = _command_lines()
    return [name for name in names if _is_named_as_ours(Path(name)) and _stays(Path(name), commands)]


def _stays(folder: Path, commands: bytes) -> bool:
    return os.fsencode(folder) in commands or (_is_ours(folder) and not _remove(folder))


def _command_lines() -> bytes:
    """The command lines of all processes; empty where the system has no /proc."""
    lines = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            lines.append(_command_line(path))
    return b"\n".join(lines)


def _command_line(path: Path) -> bytes:
    """What one process was called with. While it replaces its program, the kernel has no words for a moment."""
    for _ in range(20):
        line = path.read_bytes()
        # A thread of the kernel has neither words nor a program, and raises OSError here.
        if line or not os.readlink(path.with_name("exe")):
            break
        time.sleep(0.005)
    return line


def _is_ours(folder: Path) -> bool:
    try:
        status = os.lstat(folder)
    except (OSError, ValueError):
        return False
    return belongs_to_current_user(status)


def _is_named_as_ours(folder: Path) -> bool:
    return folder.name.startswith(PREFIX) and folder.parent == Path(tempfile.gettempdir())


def _remove(folder: Path) -> bool:
    shutil.rmtree(folder, ignore_errors=True)
    return not folder.exists()
