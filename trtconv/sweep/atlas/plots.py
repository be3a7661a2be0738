"""Latency by GPU and precision, and which proved engines no other one beats, as numbers for the page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trtconv.sweep.engine.verdicts import CellVerdict

POINT = "opt"


@dataclass(frozen=True)
class Bar:
    """A row of the latency table: milliseconds at `opt`, `width` from 0 to 100 beside the slowest of its model."""

    label: str
    milliseconds: float
    width: float
    proved: bool


@dataclass(frozen=True)
class Point:
    """An engine in a Pareto plot: `x` and `y` from 0 to 100, `best` when no other one is faster and more exact."""

    label: str
    milliseconds: float
    error: float
    x: float
    y: float
    best: bool


def latency_of(verdict: CellVerdict) -> float | None:
    """Milliseconds at `opt`, else at the first point that was measured."""
    latencies = verdict.latency_s
    seconds = latencies.get(POINT, next(iter(latencies.values()), None))
    return None if seconds is None else seconds * 1e3


def latency_bars(verdicts: Iterable[CellVerdict]) -> dict[str, list[Bar]]:
    """Bars by model and shape space, the fastest first; models of which nothing was measured are left out."""
    groups: dict[str, list[tuple[float, CellVerdict]]] = {}
    for verdict in verdicts:
        milliseconds = latency_of(verdict)
        if milliseconds is not None:
            groups.setdefault(_group(verdict), []).append((milliseconds, verdict))
    bars = {}
    for name, entries in groups.items():
        slowest = max(ms for ms, _ in entries) or 1.0
        ordered = sorted(entries, key=lambda e: e[0])
        bars[name] = [Bar(_label(v), ms, round(100 * ms / slowest, 1), v.proved) for ms, v in ordered]
    return bars


def pareto_points(verdicts: Iterable[CellVerdict]) -> dict[str, list[Point]]:
    """Proved engines with a latency and an error, by model, shape space and GPU, where there are at least two."""
    groups: dict[str, list[tuple[float, float, CellVerdict]]] = {}
    for verdict in verdicts:
        milliseconds, error = latency_of(verdict), verdict.facts.get("engine", {}).get("error")
        if verdict.proved and milliseconds is not None and isinstance(error, float):
            groups.setdefault(f"{_group(verdict)} on {verdict.cell.gpu}", []).append((milliseconds, error, verdict))
    return {name: _points(entries) for name, entries in groups.items() if len(entries) > 1}


def _points(entries: list[tuple[float, float, CellVerdict]]) -> list[Point]:
    slowest, largest = max(e[0] for e in entries) or 1.0, max(e[1] for e in entries) or 1.0
    points = []
    for ms, error, verdict in entries:
        beaten = any(
            m <= ms and e <= error and (m, e) != (ms, error) for m, e, other in entries if other is not verdict
        )
        label = f"{verdict.cell.target} {verdict.cell.precision}"
        points.append(Point(label, ms, error, round(90 * ms / slowest, 1), round(90 * error / largest, 1), not beaten))
    return sorted(points, key=lambda p: p.milliseconds)


def _group(verdict: CellVerdict) -> str:
    space = verdict.cell.space
    return verdict.cell.model + (f" ({space})" if space != "own" else "")


def _label(verdict: CellVerdict) -> str:
    cell = verdict.cell
    return f"{cell.gpu}, {cell.target}, {cell.precision}"
