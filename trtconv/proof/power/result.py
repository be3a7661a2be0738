"""What a measurement of power says, for people and as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

SCHEMA = 1
# A change of an output by this part of its scale is what a check is expected to see in FP32.
LEAST_CHANGE = 1e-5


@dataclass(frozen=True)
class TriedFault:
    """A fault with what became of it.

    `outcome`: `reported`; `missed`; `no effect` (no output changed by more than the least change); `under noise` (the
    change is smaller than the original's own rounding error, so nothing could tell). `size` is the largest change in
    units of the output's scale, infinite for another shape or an end of the run.
    """

    kind: str
    node: str
    op: str
    module: str
    source: str
    detail: str
    outcome: str
    size: float
    output: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain data; an infinite size is a text, since JSON has none."""
        size = self.size if math.isfinite(self.size) else str(self.size)
        return {**self.__dict__, "size": size}


@dataclass(frozen=True)
class PowerResult:
    """All faults that were tried. `least_change` is the part of an output's scale from which a change counts.

    `complete` is False when the time ended before the faults did.
    """

    faults: tuple[TriedFault, ...]
    points: tuple[str, ...]
    seed: int
    seconds: float
    least_change: float = LEAST_CHANGE
    complete: bool = True
    note: str = ""

    def of(self, outcome: str) -> tuple[TriedFault, ...]:
        """The faults with this outcome."""
        return tuple(f for f in self.faults if f.outcome == outcome)

    @property
    def changed(self) -> int:
        """How many faults really changed an output."""
        return len(self.of("reported")) + len(self.of("missed"))

    @property
    def share(self) -> float | None:
        """The share of those that the check reports; None when no fault changed an output."""
        return len(self.of("reported")) / self.changed if self.changed else None

    def line(self) -> str:
        """`38 of 38 small faults reported (42 tried in 2.1 s, 4 changed no output by more than 1e-05 of its scale)`."""
        if not self.faults:
            return f"not measured: {self.note}" if self.note else "not measured: the graph has no place for a fault"
        idle, hidden = len(self.of("no effect")), len(self.of("under noise"))
        words = [f"{len(self.faults)} tried in {self.seconds:.1f} s"]
        if idle:
            words.append(f"{idle} changed no output by more than {self.least_change:g} of its scale")
        if hidden:
            words.append(f"{hidden} changed them by less than the original's own rounding")
        if not self.complete:
            words.append("the time was up")
        return f"{len(self.of('reported'))} of {self.changed} small faults reported ({', '.join(words)})"

    def as_dict(self) -> dict[str, Any]:
        """Plain data, described by report.schema.json (`power`)."""
        return {
            "schema": SCHEMA,
            "tried": len(self.faults),
            "changed": self.changed,
            "reported": len(self.of("reported")),
            "no_effect": len(self.of("no effect")),
            "under_noise": len(self.of("under noise")),
            "missed": [f.as_dict() for f in sorted(self.of("missed"), key=lambda f: -f.size)],
            "faults": [f.as_dict() for f in self.faults],
            "line": self.line(),
            "points": list(self.points),
            "least_change": self.least_change,
            "complete": self.complete,
            "seed": self.seed,
            "seconds": round(self.seconds, 3),
            "note": self.note,
        }
