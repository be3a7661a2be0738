"""What a person sees while a sweep runs: a table that changes on a terminal, a line per job elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from types import TracebackType
from typing import TYPE_CHECKING, Any

from trtconv.cli.echo import echo

if TYPE_CHECKING:
    from trtconv.sweep.engine.schedule import Schedule
    from trtconv.sweep.plan.jobs import JobGraph
    from trtconv.sweep.workers.outcome import JobResult

BAR = 28
# How many of the last events stand below the table.
EVENTS = 6
_COLOURS = {"ok": "green", "cached": "cyan", "failed": "red", "blocked": "yellow", "running": "blue"}


def describe_event(result: JobResult, *, final: bool) -> str:
    """One line: `ok      export/net/own  3.2 s`."""
    if result.ok:
        return f"{'cached' if result.cached else 'ok':<7} {result.job}" + (
            "" if result.cached else f"  {result.seconds:.1f} s"
        )
    word = "failed" if final else "again"
    reason = result.message.split("\n", 1)[0]
    return f"{word:<7} {result.job}  {result.outcome}" + (f": {reason}" if reason else "")


class PlainView:
    """A line on stderr for each attempt that ended."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet = quiet

    def __enter__(self) -> PlainView:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def event(self, result: JobResult, *, final: bool) -> None:
        """Print it."""
        if not self._quiet:
            echo(describe_event(result, final=final), err=True)

    def tick(self, schedule: Schedule) -> None:
        """Nothing to draw."""


class LiveView:
    """A table with a bar for each kind of job, and the last events below it."""

    def __init__(self, graph: JobGraph) -> None:
        from rich.console import Console
        from rich.live import Live

        self._graph = graph
        self._events: list[str] = []
        self._since = time.monotonic()
        self._schedule: Schedule | None = None
        console = Console(stderr=True, highlight=False)
        self._live = Live(console=console, refresh_per_second=4, get_renderable=self._draw)

    def __enter__(self) -> LiveView:
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.refresh()
        self._live.stop()

    def event(self, result: JobResult, *, final: bool) -> None:
        """Shown below the table."""
        self._events = [*self._events, describe_event(result, final=final)][-EVENTS:]

    def tick(self, schedule: Schedule) -> None:
        """Drawn a few times a second, by a thread that only reads this."""
        self._schedule = schedule

    def _draw(self) -> Any:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        from trtconv.core.text.display import display_text

        elapsed = int(time.monotonic() - self._since)
        table = Table(box=None, padding=(0, 2, 0, 0), title=f"{elapsed // 60}:{elapsed % 60:02d}", title_justify="left")
        for heading in ("job", "", "ok", "cached", "failed", "blocked", "running", "waiting"):
            table.add_column(heading, justify="left" if heading in ("job", "") else "right")
        for kind, counts in count_by_kind(self._graph, self._schedule).items():
            bar = Text()
            for length, state in bar_parts(counts, BAR):
                bar.append("━" * length, style=_COLOURS.get(state, "dim"))
            table.add_row(kind, bar, *(str(counts[s] or "") for s in (*_COLOURS, "waiting")))
        return Group(table, *(Text(display_text(line), no_wrap=True, overflow="ellipsis") for line in self._events))


def count_by_kind(graph: JobGraph, schedule: Schedule | None) -> dict[str, Counter[str]]:
    """How many jobs of each kind are in which state."""
    kinds: dict[str, Counter[str]] = {}
    for id, job in graph.jobs.items():
        kinds.setdefault(job.kind, Counter())[_state_of(id, schedule)] += 1
    return kinds


def _state_of(job: str, schedule: Schedule | None) -> str:
    if schedule is None:
        return "waiting"
    result = schedule.results.get(job)
    if result is not None:
        return "cached" if result.cached else "ok" if result.ok else "failed"
    if job in schedule.blocked:
        return "blocked"
    return "running" if job in schedule.running else "waiting"


def bar_parts(counts: Counter[str], width: int) -> list[tuple[int, str]]:
    """Lengths that add up to `width`, by state in the order of the columns."""
    total, ends, before = sum(counts.values()) or 1, [], 0
    running = 0
    for state in (*_COLOURS, "waiting"):
        running += counts[state]
        end = round(width * running / total)
        ends.append((end - before, state))
        before = end
    return [(length, state) for length, state in ends if length]
