"""The process of a job's command: it ends with the worker that started it, and with everything that it started.

`python -I -S child.py PARENT -- PROGRAM ARGUMENTS...` becomes PROGRAM after it asked the kernel for that. It is run as
a file, so that it costs no import of trtconv's package, and PROGRAM may belong to another installation.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(arguments: list[str]) -> None:
    """Bind this process to its parent, then replace it with the program."""
    parent, program = int(arguments[0]), arguments[arguments.index("--") + 1 :]
    if sys.platform == "linux":
        # Kept by execve; the signal comes when the thread that started this process ends, here a worker's main one.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)
    os.execvp(program[0], program)


if __name__ == "__main__":
    main(sys.argv[1:])
