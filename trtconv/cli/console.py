"""What a person sees on stderr while a room works."""

from __future__ import annotations

import signal
import sys
import threading
import time
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console


def make_console(*, stderr: bool = False) -> Console:
    """A rich console; plain text and no line folding when it is not a terminal. NO_COLOR is respected by rich."""
    from rich.console import Console

    stream = sys.stderr if stderr else sys.stdout
    if stream.isatty():
        return Console(stderr=stderr, highlight=False)
    return Console(stderr=stderr, highlight=False, no_color=True, width=160, soft_wrap=True)


class ConsoleProgress:
    """One live line per stage on a terminal; elsewhere only warnings, and notes with `-v`.

    `verbosity`: -1 errors only, 0 normal, 1 with notes and phases.
    """

    def __init__(self, verbosity: int = 0) -> None:
        self._console = make_console(stderr=True)
        self._verbosity = verbosity
        self._live = self._console.is_terminal and verbosity >= 0
        self._status = self._console.status("") if self._live else None
        self._stage = ""
        self._since = time.monotonic()
        self._warned: set[str] = set()
        self._interrupted = False
        self._handler: Any = None

    def __enter__(self) -> ConsoleProgress:
        if threading.current_thread() is threading.main_thread():
            self._handler = signal.signal(signal.SIGINT, self._interrupt)
        if self._status:
            self._status.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._handler is not None:
            signal.signal(signal.SIGINT, self._handler)
        if self._status:
            self._status.stop()
        self._finish(ok=kind is None)
        if self._interrupted and kind is None:
            raise KeyboardInterrupt

    def _interrupt(self, number: int, frame: FrameType | None) -> None:
        """Ctrl-C. An interrupt raised inside a finalizer or a callback is dropped by Python; the flag outlives that."""
        self._interrupted = True
        raise KeyboardInterrupt

    def stage(self, name: str) -> None:
        """A new stage begins; the one before ended well. A room may name itself after its caller did."""
        if self._interrupted:
            raise KeyboardInterrupt
        if name == self._stage:
            return
        self._finish(ok=True)
        self._stage, self._since = name, time.monotonic()
        self.phase("")

    def phase(self, name: str, completed: int = 0, total: int = 0) -> None:
        """Show the phase in the live line. Raises KeyboardInterrupt when an earlier one was dropped on its way."""
        if self._interrupted:
            raise KeyboardInterrupt
        if self._status:
            count = f" {_bar(completed, total)} {completed}/{total}" if total else ""
            self._status.update(f"[bold]{self._stage}[/bold] {_escape(name)}{count}")

    def note(self, text: str) -> None:
        """Shown with `-v`."""
        if self._verbosity > 0:
            self._console.print(f"  [dim]{_escape(text)}[/dim]")

    def warn(self, text: str) -> None:
        """Shown once, unless `-q`."""
        if self._verbosity >= 0 and text not in self._warned:
            self._warned.add(text)
            self._console.print(f"[yellow]warning:[/yellow] {_escape(text)}")

    def _finish(self, *, ok: bool) -> None:
        if self._stage and self._live:
            mark = "[green]✓[/green]" if ok else "[red]✗[/red]"
            self._console.print(f"{mark} {self._stage:<8} {time.monotonic() - self._since:6.1f} s")
        self._stage = ""


_CELLS = 20


def _bar(completed: int, total: int) -> str:
    """A bar of fixed width."""
    full = min(_CELLS, _CELLS * completed // total)
    return "━" * full + "╌" * (_CELLS - full)


def _escape(text: str) -> str:
    from rich.markup import escape

    from trtconv.core.text.display import display_text

    return escape(display_text(text))
