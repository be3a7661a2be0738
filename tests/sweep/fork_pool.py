"""A pool without Ray: a forked process per task, which dies with the driver as Ray's workers do."""

import ctypes
import json
import os
import select
import signal

from trtconv.sweep.workers.outcome import JobResult, result_from
from trtconv.sweep.workers.task import probe_program, run_task


class ForkPool:
    """`slots` tasks at a time."""

    def __init__(self, slots=4):
        self._slots = slots
        self._tasks = {}
        self.placements = []
        self.tasks = []
        self.closed = False

    def probe(self, program, variables, placement):
        return {**probe_program(program, variables), "gpu": placement.accelerator}

    def room(self, resource_class):
        return max(0, self._slots - len(self._tasks))

    def submit(self, task, placement):
        self.placements.append(placement)
        self.tasks.append(task)
        read, write = os.pipe()
        driver = os.getpid()
        pid = os.fork()
        if pid == 0:
            try:
                os.close(read)
                self._work(task, write, driver)
            finally:
                os._exit(1)
        os.close(write)
        self._tasks[read] = (pid, task.job, b"")

    def _work(self, task, write, driver):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)
        if os.getppid() != driver:
            os._exit(1)
        result = run_task(task)
        with open(write, "wb") as stream:
            stream.write(json.dumps(result.as_dict()).encode())
        os._exit(0)

    def wait(self, seconds):
        ready, _, _ = select.select(list(self._tasks), [], [], seconds if self._tasks else min(seconds, 0.01))
        results = []
        for descriptor in ready:
            pid, job, data = self._tasks[descriptor]
            chunk = os.read(descriptor, 1 << 20)
            if chunk:
                self._tasks[descriptor] = (pid, job, data + chunk)
                continue
            os.waitpid(pid, 0)
            os.close(descriptor)
            del self._tasks[descriptor]
            results.append(result_from(json.loads(data)) if data else JobResult(job, "lost"))
        return results

    def cancel(self):
        for descriptor, (pid, _, _) in self._tasks.items():
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            os.close(descriptor)
        self._tasks.clear()

    def close(self):
        self.closed = True
