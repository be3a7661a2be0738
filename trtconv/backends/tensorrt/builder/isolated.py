"""Building in a process of its own: for the command line, and for a TensorRT that cannot be told to stop (8.6).

Ctrl-C then ends that process, and a crash inside the builder becomes an error instead of the end of everything. The
start of 8.6 takes seconds, so several builds can share one process. The child ends with its parent even when that is
killed; the folder that both used is then removed by the next run.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from trtconv.backends.protocol import BuiltEngine, EngineSettings
from trtconv.backends.tensorrt.builder.answer import RESULT, read_answer, write_answer
from trtconv.core.errors import LimitError, TrtconvError
from trtconv.core.files.parent_process import end_with_parent, lines_from_parent, parent_arguments
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.python_child import import_path, run_module
from trtconv.core.limits import limited, read_limits
from trtconv.core.progress import Progress, SilentProgress

_TICK_S = 0.1
_END_S = 10


def build_isolated(family: str, settings: EngineSettings, progress: Progress) -> BuiltEngine:
    """What `TensorRTBackend.build` returns or raises, made in a child process. Ctrl-C kills it and is raised again."""
    with BuildProcess(family) as process:
        return process.build(settings, progress)


class BuildProcess:
    """A child process that builds one engine after another; it is started by the first build and ended by `close`.

    A child that died or was interrupted is replaced at the next build. Plugin libraries stay loaded in a child, so
    that one is used only for builds with the same libraries.
    """

    def __init__(self, family: str) -> None:
        self._family = family
        self._plugins: tuple[Path, ...] = ()
        self._child: subprocess.Popen[str] | None = None
        self._count = 0
        self._folder = private_temporary_folder("build")
        self.place = Path(self._folder.name)

    def __enter__(self) -> BuildProcess:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def build(self, settings: EngineSettings, progress: Progress) -> BuiltEngine:
        """See `build_isolated`."""
        if self._child is not None and (self._child.poll() is not None or self._plugins != settings.plugins):
            self._end()
        child = self._child or self._start()
        self._plugins = settings.plugins
        self._count += 1
        work, result = self.place / f"{self._count}.work", self.place / f"{self._count}{RESULT}"
        work.write_bytes(pickle.dumps((self._family, settings)))
        assert child.stdin is not None
        # A child that is gone already is noticed below.
        with contextlib.suppress(OSError):
            child.stdin.write(f"{work}\n")
            child.stdin.flush()
        self._wait(child, result, progress)
        if not result.exists():
            self._end()
            log_lines = (self.place / "log").read_text(errors="replace").strip().splitlines()
            raise TrtconvError(
                f"the builder of {self._family} ended with {_ending(child.returncode)}",
                details=log_lines[-8:],
                hint="the builder itself crashed: `trtconv rewrite` for this target may write the graph in a form that "
                "it takes; else see `trtconv doctor`: is the driver new enough, is there memory left?",
            )
        return read_answer(work)

    def close(self) -> None:
        """End the child and remove its files."""
        self._end()
        self._folder.cleanup()

    def _start(self) -> subprocess.Popen[str]:
        # Kernels are then loaded when they are first tried, which 8.6 itself recommends at every start.
        environment = {
            "CUDA_MODULE_LOADING": "LAZY",
            **os.environ,
            "PYTHONPATH": import_path(),
        }
        with open(self.place / "log", "wb") as log:
            self._child = subprocess.Popen(
                [*run_module("trtconv.backends.tensorrt.builder.isolated"), *parent_arguments()],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                text=True,
            )
        return self._child

    def _wait(self, child: subprocess.Popen[str], result: Path, progress: Progress) -> None:
        start, phase_file = time.monotonic(), result.with_suffix(".phase")
        try:
            while child.poll() is None and not result.exists():
                progress.phase(*(_phase(phase_file) or (f"building, {time.monotonic() - start:.0f} s",)))
                time.sleep(_TICK_S)
        except BaseException:
            child.kill()
            self._end()
            raise

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        if child.stdin is not None:
            with contextlib.suppress(OSError):
                child.stdin.close()
        try:
            child.wait(timeout=_END_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _phase(path: Path) -> tuple[str, int, int] | None:
    """What the child is doing, if its builder tells."""
    try:
        name, completed, total = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return str(name), int(completed), int(total)


class _TellParent(SilentProgress):
    """Writes the steps that a builder counts to a file that the parent reads."""

    def __init__(self, path: Path) -> None:
        self._path, self._next = path, 0.0

    def phase(self, name: str, completed: int = 0, total: int = 0) -> None:
        """Keep it for the parent, at most once in a tick; a phase without counts is the parent's to word."""
        if total and time.monotonic() >= self._next:
            self._next = time.monotonic() + _TICK_S
            part = self._path.with_suffix(".part-phase")
            part.write_text(json.dumps([name, completed, total]))
            os.replace(part, self._path)


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code is not None and code < 0 else f"exit code {code}"


def main() -> None:
    """The child: build whatever is named on stdin, one file a line, and write the result or the error beside it."""
    import signal

    end_with_parent(sys.argv[1:])
    # The parent hears Ctrl-C as well and ends this process.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for line in lines_from_parent(sys.stdin):
        _answer(Path(line))


def _answer(work: Path) -> None:
    from trtconv.backends.tensorrt.backend import TensorRTBackend

    # By our parent, in a folder that only this user can write; what goes back is not pickled.
    family, settings = pickle.loads(work.read_bytes())
    work.unlink()
    result: BuiltEngine | TrtconvError
    try:
        with limited(read_limits(), partial(_end_beyond_limit, work)):
            result = TensorRTBackend(family).build_here(settings, _TellParent(work.with_suffix(".phase"))).detached()
    except TrtconvError as error:
        result = error
    write_answer(work, result)


def _end_beyond_limit(work: Path, error: LimitError) -> NoReturn:
    """The builder does not listen; the parent reads the reason and starts another child for the next build."""
    write_answer(work, error)
    os._exit(error.exit_code)


if __name__ == "__main__":
    main()
