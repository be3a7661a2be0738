"""The process as it was before the module's first run, kept in a fork, in which every call is a first one.

What a call leaves in the module is put back by name. What it leaves in a class, a closure, a default argument or a
package has no end of names; the memory of a process has all of them.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.export.module.noise.shared_memory import make_private

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner

    Array = np.ndarray[Any, np.dtype[Any]]

# Seconds until the fork waits for its first request.
BEGINNING = 10.0
INPUTS, OUTPUTS = "inputs.safetensors", "outputs.safetensors"


class FreshProcess:
    """A fork that waits, and forks again for each call. Close it, or use it in a `with` block.

    Where nothing can be forked (other systems than Linux, no memory) it gives no outputs.
    """

    def __init__(self, runner: ModuleRunner) -> None:
        self._runner, self._child, self._requests, self._replies = runner, 0, -1, -1
        if sys.platform != "linux":
            return
        # Imported here, the packages are there in every fork.
        import_module("safetensors.numpy")
        requests, replies = os.pipe(), os.pipe()
        try:
            with warnings.catch_warnings():
                # Python 3.12 warns of threads that a fork lacks; the child uses none of them.
                warnings.simplefilter("ignore", DeprecationWarning)
                self._child = os.fork()
        except OSError:
            for end in (*requests, *replies):
                os.close(end)
            return
        if self._child == 0:
            os.close(requests[1])
            os.close(replies[0])
            _serve(runner, requests[0], replies[1])
        os.close(requests[0])
        os.close(replies[1])
        self._requests, self._replies = requests[1], replies[0]
        # It makes what it shares with this process its own first.
        if self._reply("", BEGINNING) != b"+":
            self.close()

    def __enter__(self) -> FreshProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_possible(self) -> bool:
        """True where a system forks processes."""
        return sys.platform == "linux"

    def outputs(self, inputs: Mapping[str, Array], seconds: float) -> dict[str, Array] | None:
        """What the module gives when this is its first call, with one thread.

        None where it raises there, as a library may in a fork, or takes more than `seconds`; nothing is run after that.
        """
        from safetensors.numpy import load_file, save_file

        if not self._child:
            return None
        with private_temporary_folder("first") as folder:
            save_file(dict(inputs), str(Path(folder) / INPUTS))
            # Whether equal elements have an order is known by now.
            reply, outputs = self._reply(f"{int(self._runner.ranks)} {folder}\n", seconds), Path(folder) / OUTPUTS
            # A module may end its process, with a status that looks like success.
            if reply != b"+" or not outputs.exists():
                self.close()
                return None
            return dict(load_file(str(outputs)))

    def _reply(self, request: str, seconds: float) -> bytes:
        """Nothing where it does not come in time, or the fork was killed."""
        with suppress(BrokenPipeError):
            os.write(self._requests, request.encode())
            ready, _, _ = select.select([self._replies], [], [], seconds)
            return os.read(self._replies, 1) if ready else b""
        return b""

    def close(self) -> None:
        """End the fork, and what it runs."""
        if not self._child:
            return
        # It leads no group yet if it was ended at once.
        for kill in (os.killpg, os.kill):
            with suppress(ProcessLookupError):
                kill(self._child, signal.SIGKILL)
        os.waitpid(self._child, 0)
        os.close(self._requests)
        os.close(self._replies)
        self._child = 0


def _serve(runner: ModuleRunner, requests: int, replies: int) -> None:
    """Fork for each folder that is named, and never return."""
    try:
        # One group, so that what hangs is ended with it; interrupts from the keyboard do not come here.
        os.setsid()
        # What was open for a progress line or a report is the parent's to write to, and its garbage the parent's too.
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        gc.disable()
        make_private()
        os.write(replies, b"+")
        with os.fdopen(requests) as lines:
            for line in lines:
                child = os.fork()
                if child == 0:
                    ranks, _, folder = line.rstrip("\n").partition(" ")
                    runner.ranks = ranks == "1"
                    os._exit(_run(runner, Path(folder)))
                os.write(replies, b"-" if os.waitpid(child, 0)[1] else b"+")
    finally:
        os._exit(0)


def _run(runner: ModuleRunner, folder: Path) -> int:
    """The exit status: 0 where the outputs were written."""
    import torch
    from safetensors.numpy import load_file, save_file

    try:
        # The threads of the pool did not come along.
        torch.set_num_threads(1)
        outputs = runner(load_file(str(folder / INPUTS)))
        save_file({n: v.copy(order="C") for n, v in outputs.items()}, str(folder / OUTPUTS))
    except BaseException:  # noqa: BLE001 - whatever the module raises; the fork must not go on as the parent
        return 1
    return 0
