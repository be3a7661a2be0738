"""Numbers that budgets and baselines judge, each with its spread over several runs."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from trtconv.core.sizes import format_bytes

# A latency is named with its sample point: `latency_ms at opt`.
LATENCY = "latency_ms at "


@dataclass(frozen=True)
class Measurement:
    """`value` is the median of `runs` (one run for what does not vary); `places` are nodes that were counted."""

    value: float
    runs: tuple[float, ...] = ()
    places: tuple[Mapping[str, str], ...] = field(default=())

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {"value": self.value, "runs": list(self.runs)}


def measurement(runs: Sequence[float]) -> Measurement:
    """The median of several runs."""
    return Measurement(statistics.median(runs), tuple(runs))


def from_dict(data: Mapping[str, Any]) -> Measurement:
    """The inverse of `as_dict`."""
    return Measurement(float(data["value"]), tuple(float(r) for r in data.get("runs", ())))


def format_value(name: str, value: float) -> str:
    """A number in the unit that its name says."""
    if name.endswith("_bytes"):
        return format_bytes(value)
    if name.startswith("latency_ms"):
        return f"{value:.3g} ms"
    if name.endswith("_seconds"):
        return f"{value:.3g} s"
    if name == "precision_share":
        return f"{100 * value:.1f} %"
    return f"{value:g}"
