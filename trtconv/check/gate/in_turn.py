"""`--baseline-engine`: an earlier engine and this one measured in turn, every time in a new process.

An engine's latency differs from process to process (memory is laid out anew, clocks and neighbours change), often by
more than within one. Runs of one process are therefore one observation, their median; and both engines share whatever
the machine does, since their processes alternate: old, new, new, old, old, new, ...
"""

from __future__ import annotations

import dataclasses
import functools
import random
import statistics
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.check.compare.reference_fit import find_reference
from trtconv.check.gate.baseline import SIGNIFICANCE, is_regression
from trtconv.check.gate.measured import LATENCY, Measurement, format_value, measurement
from trtconv.check.gate.one_process import process_medians
from trtconv.check.gate.rank_test import most_pairs_below, p_value_of_larger
from trtconv.core.artifacts import require_file
from trtconv.core.errors import TrtconvError
from trtconv.core.progress import Progress
from trtconv.core.report import CheckReport, Finding
from trtconv.core.requests import CheckRequest

# The smallest visible slowdown is one that would be reported in this share of repetitions.
VISIBLE_SHARE = 0.8
# Where only larger slowdowns are visible, the machine is too busy for a gate, and the report says so.
POOR_SIGHT = 1.5
_DRAWS = 400

Measure = Callable[[CheckRequest, Sequence[str]], Mapping[str, float]]


@dataclass(frozen=True)
class InTurn:
    """What `--baseline-engine` asks: the earlier engine, and how many processes each of both gets."""

    engine: Path
    processes: int


@dataclass(frozen=True)
class PairedLatency:
    """Milliseconds at one point, a median for each process; `limit` is the ratio that is allowed."""

    point: str
    new: Measurement
    old: Measurement
    limit: float

    @property
    def ratio(self) -> float:
        """The new median as a multiple of the old one."""
        return self.new.value / self.old.value

    @property
    def is_slower(self) -> bool:
        """True when the new engine is slower by more than the limit, and that is not noise."""
        return is_regression(self.new, self.old, self.limit)

    @functools.cached_property
    def smallest_visible(self) -> float:
        """The smallest slowdown that a comparison with this noise would have reported, as a ratio."""
        return smallest_visible(self.new.runs, self.old.runs, self.limit)

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "point": self.point,
            "new": list(self.new.runs),
            "old": list(self.old.runs),
            "ratio": self.ratio,
            "limit": self.limit,
            "p_value": p_value_of_larger(self.new.runs, self.old.runs),
            "smallest_visible": self.smallest_visible,
            "passed": not self.is_slower,
        }


def measure_in_turn(
    request: CheckRequest,
    order: InTurn,
    points: Sequence[str],
    limit: float,
    progress: Progress,
    measure: Measure = process_medians,
) -> tuple[PairedLatency, ...]:
    """Measure both at the points. Raises what a process raises: an engine that does not run here, say."""
    require_file(order.engine, "earlier engine")
    shared = dataclasses.replace(request, reference=find_reference(request.subject, request.reference))
    requests = {"new": shared, "old": dataclasses.replace(shared, subject=order.engine)}
    medians: dict[str, list[Mapping[str, float]]] = {"new": [], "old": []}
    for number, which in enumerate(alternating(order.processes)):
        progress.phase(f"process {number + 1} of {2 * order.processes}: {requests[which].subject.name}")
        medians[which].append(measure(requests[which], points))
    return tuple(
        PairedLatency(
            point,
            measurement([each[point] for each in medians["new"]]),
            measurement([each[point] for each in medians["old"]]),
            limit,
        )
        for point in points
    )


def alternating(processes: int) -> Iterator[str]:
    """`old new new old ...`: neither is always the one that finds the GPU cold, and a drift meets both alike."""
    for number in range(processes):
        yield from (("old", "new"), ("new", "old"))[number % 2]


def smallest_visible(new: Sequence[float], old: Sequence[float], limit: float) -> float:
    """The ratio of the medians from which on a slowdown is reported in `VISIBLE_SHARE` of repetitions.

    Repetitions are drawn from the spread of both samples about their medians (a bootstrap: B. Efron, "Bootstrap
    methods: another look at the jackknife", 1979). In each the slowdown at which `is_regression` turns is known in
    closed form: the median has to pass the limit, and at most `most_pairs_below` runs of the old may lie above.
    """
    spread = [value / statistics.median(sample) for sample in (new, old) for value in sample]
    draw = random.Random(0)
    pairs = most_pairs_below(len(new), len(old), SIGNIFICANCE)
    turning = []
    for _ in range(_DRAWS):
        high, low = draw.choices(spread, k=len(new)), draw.choices(spread, k=len(old))
        by_median = limit * statistics.median(low) / statistics.median(high)
        by_rank = sorted((one / other for one in low for other in high), reverse=True)[pairs]
        turning.append(max(by_median, by_rank))
    return sorted(turning)[int(VISIBLE_SHARE * _DRAWS)]


def compare_in_turn(
    report: CheckReport,
    request: CheckRequest,
    order: InTurn,
    points: Iterable[str],
    limit: float,
    progress: Progress,
    measure: Measure = process_medians,
) -> CheckReport:
    """The report with a finding and a row for each point, and all medians under `in_turn`."""
    try:
        pairs = measure_in_turn(request, order, tuple(points), limit, progress, measure)
    except TrtconvError as error:
        level = "note" if request.allow_unrunnable else "error"
        text = f"the latency was not compared with that of '{order.engine}': {error.message}"
        finding = Finding(level, error.kind, text, error.hint or "")
        return dataclasses.replace(report, findings=(*report.findings, finding))
    findings = tuple(finding for pair in pairs for finding in _findings(pair, order))
    extras = {
        **report.extras,
        "budgets": [*report.extras.get("budgets", ()), *(_row(pair, order) for pair in pairs)],
        "in_turn": {
            "baseline": str(order.engine),
            "processes": order.processes,
            "points": [pair.as_dict() for pair in pairs],
        },
    }
    return dataclasses.replace(report, findings=(*report.findings, *findings), extras=extras)


def _row(pair: PairedLatency, order: InTurn) -> dict[str, Any]:
    name = f"{LATENCY}{pair.point}"
    return {
        "name": f"{name} against '{order.engine.name}', in turn",
        "measured": format_value(name, pair.new.value),
        "limit": f"{format_value(name, pair.old.value)} x {pair.limit:g}",
        "passed": not pair.is_slower,
        "value": pair.new.value,
        "bound": pair.old.value * pair.limit,
    }


def _findings(pair: PairedLatency, order: InTurn) -> Iterator[Finding]:
    times = f"{pair.ratio:.3g} times that of '{order.engine.name}'"
    how = f"medians of {order.processes} processes each, in turn"
    if pair.is_slower:
        yield Finding(
            "error",
            "budget",
            f"the latency at {pair.point} is {times} ({how}); allowed is {pair.limit:g}",
            "`trtconv inspect ENGINE --layers` shows the layers of both with their times",
        )
        return
    visible = pair.smallest_visible
    text = f"the latency at {pair.point} is {times} ({how}); the smallest slowdown that would have been seen is"
    if visible > POOR_SIGHT:
        hint = "measure on a machine that does nothing else, or with more --processes"
        yield Finding("warning", "budget", f"{text} {visible:.3g} times", hint)
    else:
        yield Finding("note", "budget", f"{text} {visible:.3g} times")
