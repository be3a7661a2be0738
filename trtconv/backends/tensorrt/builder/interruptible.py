"""Long native calls that the user can stop, and see going on.

The call runs in a thread of its own, so that the main thread hears Ctrl-C at once; the monitor then tells the builder
to stop at its next step, and KeyboardInterrupt is raised when it has.
"""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from trtconv.core.progress import Progress

T = TypeVar("T")
_TICK_S = 0.1


class Cancellation:
    """Set by the main thread, read by the monitor in the builder's thread."""

    def __init__(self) -> None:
        self._event = threading.Event()

    def cancel(self) -> None:
        """Ask for a stop."""
        self._event.set()

    @property
    def requested(self) -> bool:
        """True when a stop was asked for."""
        return self._event.is_set()


def run_interruptible(work: Callable[[], T], cancellation: Cancellation, waiting: Callable[[float], None]) -> T:
    """Run `work` in a thread; `waiting(seconds)` is called now and then. Its exception is raised here."""
    outcome: list[T] = []
    failure: list[BaseException] = []

    def body() -> None:
        try:
            outcome.append(work())
        except BaseException as error:  # noqa: BLE001 - handed to the caller's thread
            failure.append(error)

    thread = threading.Thread(target=body, name="trtconv-build", daemon=True)
    start = time.monotonic()
    with _ctrl_c_cancels(cancellation):
        thread.start()
        while thread.is_alive():
            thread.join(_TICK_S)
            waiting(time.monotonic() - start)
    if cancellation.requested:
        raise KeyboardInterrupt
    if failure:
        raise failure[0]
    return outcome[0]


@contextlib.contextmanager
def _ctrl_c_cancels(cancellation: Cancellation) -> Iterator[None]:
    """Ctrl-C sets the cancellation instead of raising somewhere between two lines of the loop that waits.

    Only the main thread may change handlers; elsewhere, and where SIGINT is ignored, nothing is changed.
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    signal.signal(signal.SIGINT, lambda *_: cancellation.cancel())
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def make_monitor(trt: Any, progress: Progress, cancellation: Cancellation) -> Any:
    """An IProgressMonitor that shows the builder's phases; returning False from a step cancels the build."""

    class Monitor(trt.IProgressMonitor):  # type: ignore[misc]
        """Called from the builder's threads. Exceptions must not leave it: the caller is C++."""

        def __init__(self) -> None:
            trt.IProgressMonitor.__init__(self)
            self._totals: dict[str, int] = {}

        def phase_start(self, phase_name: str, parent_phase: str | None, num_steps: int) -> None:
            self._totals[phase_name] = num_steps
            self._show(phase_name, 0)

        def step_complete(self, phase_name: str, step: int) -> bool:
            self._show(phase_name, step + 1)
            return not cancellation.requested

        def phase_finish(self, phase_name: str) -> None:
            self._totals.pop(phase_name, None)

        def _show(self, name: str, completed: int) -> None:
            # A drawing problem must not end the build.
            with contextlib.suppress(Exception):
                progress.phase(name, completed, self._totals.get(name, 0))

    return Monitor()
