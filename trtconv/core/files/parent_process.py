"""How a child process of trtconv ends when its parent does, also when that was killed and could not say so.

On Linux the kernel kills the child (PR_SET_PDEATHSIG). Everywhere the pipe from the parent ends with it, which a thread
of the child notices; a native call that keeps Python's lock can delay that one.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from collections.abc import Iterator
from queue import SimpleQueue
from typing import TextIO

_PR_SET_PDEATHSIG = 1


def parent_arguments() -> tuple[str, str]:
    """What the parent appends to the child's command line, for `end_with_parent`.

    The kernel's signal comes when the *thread* that started the child ends, so it is requested in the main thread
    alone.
    """
    return str(os.getpid()), "signal" if threading.current_thread() is threading.main_thread() else "pipe"


def end_with_parent(arguments: list[str]) -> None:
    """Called first in the child, with what `parent_arguments` gave. Ends the process if the parent is gone already."""
    parent, way = int(arguments[0]), arguments[1]
    if way == "signal" and sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.name == "posix" and os.getppid() != parent:
        os._exit(1)


def lines_from_parent(stream: TextIO) -> Iterator[str]:
    """The lines that the parent writes, one at a time; when it ends while one is worked on, this process ends too."""
    lines: SimpleQueue[str | None] = SimpleQueue()
    lock = threading.Lock()
    open_lines = 0

    def read() -> None:
        nonlocal open_lines
        for line in stream:
            with lock:
                open_lines += 1
            lines.put(line.rstrip("\n"))
        with lock:
            if open_lines:
                os._exit(1)
        lines.put(None)

    threading.Thread(target=read, name="trtconv-parent", daemon=True).start()
    while (line := lines.get()) is not None:
        yield line
        with lock:
            open_lines -= 1
