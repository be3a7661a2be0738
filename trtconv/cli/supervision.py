"""A command runs in a child, so that what can end a process ends in one error: native code, a limit, a hang.

The parent forks before a thread or a heavy package is there, which costs about a millisecond, and does nothing but
wait: it hands signals on, and it ends a child that goes beyond its limits or does not listen, also one whose native
call holds Python's lock. Linux only; elsewhere, and with `--debug`, the command runs in the process itself.
"""

from __future__ import annotations

import faulthandler
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from trtconv.cli.ending import has_ended
from trtconv.cli.termination import GRACE_S, INTERRUPTED, LIMIT_GRACE_S
from trtconv.core.errors import CrashError, TrtconvError
from trtconv.core.files.parent_process import end_with_parent
from trtconv.core.files.private_folder import remove_stale_folders
from trtconv.core.limits import Limits, excess, process_bytes, read_limits

_TICK_S = 0.1
# The child has its own way out of a limit or after SIGTERM; the parent acts where that did not work.
_PATIENCE_S = 1.5
_FAR_BEYOND = 1.25
_PASSED_ON = (signal.SIGINT, signal.SIGTERM)
_FRAME = re.compile(r'Current thread .*\n  File "(.+)", line (\d+) in ')
_STACK_BYTES = 1 << 16


class _End(NamedTuple):
    """When the child is killed if it still runs, and what is shown then; no error after SIGTERM."""

    at: float
    error: TrtconvError | None = None


def supervise(show: Callable[[Exception], int]) -> bool:
    """Return True in a child that carries on; the parent ends with the child's exit code, and never returns.

    `show` prints an error and gives its exit code: for a child that was ended by a signal, or beyond its limits.
    Returns False where there is no child.
    """
    if sys.platform != "linux":
        return False
    stack = os.memfd_create("trtconv-stack")
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (*_PASSED_ON, signal.SIGCHLD))
    parent, child = os.getpid(), os.fork()
    if not child:
        end_with_parent([str(parent), "signal"])
        # Where the native code was called from; it is written by the handler of the fatal signal.
        faulthandler.enable(stack)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return True
    code = 1
    try:
        code = _wait(child, stack, show)
        sys.stderr.flush()
    finally:
        os._exit(code)


def _wait(child: int, stack: int, show: Callable[[Exception], int]) -> int:
    limits = _limits()
    started = time.monotonic()
    end: _End | None = None
    terminated = interrupted = False
    while True:
        received = signal.sigtimedwait((*_PASSED_ON, signal.SIGCHLD), _TICK_S)
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            break
        now = time.monotonic()
        if received is not None and received.si_signo in _PASSED_ON:
            # What the terminal sends (a positive code) went to the child as well.
            if received.si_code <= 0:
                os.kill(child, received.si_signo)
            interrupted = interrupted or received.si_signo == signal.SIGINT
            if received.si_signo == signal.SIGTERM:
                terminated, end = True, end or _End(now + GRACE_S + _PATIENCE_S)
        end = end or _beyond(limits, now - started, child, now)
        if end is not None and now >= end.at:
            os.kill(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            return show(end.error) if end.error is not None else 128 + signal.SIGTERM
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        return code if has_ended() else show(_left(code))
    if end is not None and end.error is not None:
        return show(end.error)
    if interrupted and -code not in _PASSED_ON:
        # A library that an interrupt met while it was loaded; there is nothing to look for in a file.
        _remove_folders()
        sys.stderr.write(f"{INTERRUPTED}\n")
        return 128 + signal.SIGINT
    if -code in _PASSED_ON or (terminated and -code == signal.SIGKILL):
        return 128 - code
    return show(_crash(-code, os.pread(stack, _STACK_BYTES, 0).decode(errors="replace")))


def _limits() -> Limits:
    """Limits that cannot be read are the child's to refuse."""
    with suppress(TrtconvError):
        return read_limits()
    return Limits()


def _beyond(limits: Limits, seconds: float, child: int, now: float) -> _End | None:
    size = process_bytes(child)
    error = excess(limits, seconds, size)
    if error is None:
        return None
    far = limits.memory is not None and size > limits.memory * _FAR_BEYOND
    return _End(now if far else now + LIMIT_GRACE_S + _PATIENCE_S, error)


def _left(code: int) -> CrashError:
    _remove_folders()
    return CrashError(
        f"something that ran here ended the process with exit code {code} before there was a verdict, as os._exit does",
        hint="look in the module and in what it imports for os._exit, or for a library's function that calls exit",
    )


def _crash(number: int, stack: str) -> CrashError:
    name = signal.Signals(number).name if number in set(signal.Signals) else "unknown"
    _remove_folders()
    frame = _FRAME.search(stack)
    where = f"{frame[1]}:{frame[2]}" if frame else None
    if number == signal.SIGKILL:
        return CrashError(
            "the command was killed (SIGKILL); no output was left half written",
            hint="was the machine out of memory? TRTCONV_MEMORY_LIMIT=SIZE ends it earlier, with an error",
        )
    if number == signal.SIGFPE:
        return CrashError(
            "native code ended the command by signal 8 (SIGFPE): whole numbers were divided by zero, or the smallest "
            "one by -1; no output was left half written",
            where=where,
            hint="give the inputs ranges without such values (--input 'name:int32[N]=0:99'), or keep the module's "
            "divisors from them",
        )
    return CrashError(
        f"native code ended the command by signal {number} ({name}); no output was left half written",
        where=where,
        hint="a damaged or hostile file can make a library crash; --debug runs the command without this protection",
    )


def _remove_folders() -> None:
    """Temporary folders of the child; what lies beside outputs goes with the next command that writes there."""
    with suppress(OSError):
        remove_stale_folders(Path(tempfile.gettempdir()))
