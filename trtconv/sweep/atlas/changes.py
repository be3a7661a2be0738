"""What changed since the sweep before, new reds first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trtconv.sweep.engine.verdicts import CellVerdict

# Worse by this ratio is a change; engines that were built anew differ by a few per cent.
SLOWER = 1.1
_RANK = {"green": 0, "amber": 1, "red": 2}


@dataclass(frozen=True)
class CellChange:
    """A cell that is not what it was. `kind` is `new red`, `worse`, `slower`, `mended` or `faster`."""

    cell: str
    kind: str
    text: str


ORDER = ("new red", "worse", "slower", "mended", "faster")


def find_changes(
    verdicts: Iterable[CellVerdict], before: Mapping[str, tuple[str, Mapping[str, float]]]
) -> tuple[CellChange, ...]:
    """The changes against earlier states and latencies by cell; cells that are new or were not run are none."""
    changes = []
    for verdict in verdicts:
        earlier = before.get(verdict.cell.id)
        if earlier is None or "open" in (verdict.state, earlier[0]):
            continue
        change = _state_change(verdict, earlier[0]) or _latency_change(verdict, earlier[1])
        if change is not None:
            changes.append(change)
    return tuple(sorted(changes, key=lambda c: ORDER.index(c.kind)))


def _state_change(verdict: CellVerdict, earlier: str) -> CellChange | None:
    step = _RANK[verdict.state] - _RANK[earlier]
    if not step:
        return None
    kind = "mended" if step < 0 else "new red" if verdict.state == "red" else "worse"
    return CellChange(verdict.cell.id, kind, f"{earlier} to {verdict.state}: {verdict.reason}")


def _latency_change(verdict: CellVerdict, earlier: Mapping[str, float]) -> CellChange | None:
    ratios = {p: s / earlier[p] for p, s in verdict.latency_s.items() if earlier.get(p)}
    if not ratios:
        return None
    point, ratio = max(ratios.items(), key=lambda item: max(item[1], 1 / item[1]))
    if 1 / SLOWER <= ratio <= SLOWER:
        return None
    text = f"{earlier[point] * 1e3:.3f} ms to {verdict.latency_s[point] * 1e3:.3f} ms at {point}"
    return CellChange(verdict.cell.id, "slower" if ratio > 1 else "faster", text)
