"""Running one command with a time limit, its output in a file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trtconv.sweep.workers import child

# What is read of a command's output for its message.
TAIL_BYTES = 16 << 10


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code (negative for a signal), None when it ran over its time; what it said."""

    code: int | None
    output: str
    seconds: float


def run_command(
    words: Sequence[str],
    *,
    folder: Path,
    log: Path,
    seconds: float,
    variables: Mapping[str, str],
    stdout: Path | None = None,
) -> Ended:
    """Run a command in `folder`; stderr is appended to `log`, and stdout too unless it has a file of its own.

    The command has a process group of its own, all of which is killed when it runs over `seconds` and at its end.
    Raises OSError when it cannot be started.
    """
    start = time.monotonic()
    with open(log, "ab") as errors:
        offset = errors.tell()
        output = open(stdout, "wb") if stdout else errors  # noqa: SIM115
        try:
            process = _start(words, folder, output, errors, variables)
        finally:
            if stdout:
                output.close()
    code = _end(process, seconds)
    return Ended(code, _read_from(log, offset), time.monotonic() - start)


def _start(
    words: Sequence[str], folder: Path, output: IO[bytes], errors: IO[bytes], variables: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    """The command as a process that ends with this one, where the kernel can bind the two."""
    launcher = [sys.executable, "-I", "-S", str(Path(child.__file__)), str(os.getpid()), "--"]
    # The kernel binds it to the thread that starts it: only where that is the main one, which lives as long as we do.
    bound = launcher if threading.current_thread() is threading.main_thread() else []
    return subprocess.Popen(
        [*bound, *words],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=errors,
        env={**os.environ, **variables},
        start_new_session=True,
    )


def _end(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Wait for its exit code, None where it took longer, and end all that is left of its group."""
    try:
        return process.wait(timeout=seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Also what the command left behind.
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _read_from(log: Path, offset: int) -> str:
    with open(log, "rb") as stream:
        size = stream.seek(0, os.SEEK_END)
        stream.seek(max(offset, size - TAIL_BYTES))
        return stream.read().decode(errors="replace")
