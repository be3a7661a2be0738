"""Budgets and baseline applied to a report: what makes `trtconv check` fail besides wrong numbers."""

from __future__ import annotations

import dataclasses
import datetime
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.check.compare.subjects import is_engine
from trtconv.check.gate.baseline import AGAINST, RATIOS, Baseline, compare_with_baseline, read_baseline
from trtconv.check.gate.budgets import NO_BUDGETS, Budgets, judge_budgets, parse_budgets
from trtconv.check.gate.in_turn import InTurn, compare_in_turn
from trtconv.check.gate.measure import GateMeasurements, measure_again, measure_subject
from trtconv.check.gate.measured import LATENCY
from trtconv.check.reporters.json_report import report_dict
from trtconv.core.artifacts import write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.earlier_reports import require_report_or_nothing
from trtconv.core.progress import Progress
from trtconv.core.report import CheckReport, Finding
from trtconv.core.requests import CheckRequest

ALWAYS = ("plugin_nodes",)
# Baselines that one file remembers.
MOST_HISTORY = 100
# Seconds before what was too slow is measured again; it counts when it was too slow each time.
PAUSES = (0.5, 3.0)
OF_ENGINES = ("engine_bytes", "build_seconds", "device_memory_bytes", "precision_share")


@dataclass(frozen=True)
class Gate:
    """The limits of a check. `update` writes the report to `baseline` instead of comparing with it."""

    budgets: Budgets = NO_BUDGETS
    baseline: Path | None = None
    update: bool = False
    ratios: Mapping[str, float] = field(default_factory=lambda: RATIOS)
    in_turn: InTurn | None = None


def read_gate(
    budgets: Mapping[str, Any],
    ratios: Mapping[str, Any],
    baseline: Path | None,
    *,
    update: bool = False,
    in_turn: InTurn | None = None,
) -> Gate:
    """The gate of `[check.budgets]` and `[check.baseline]`. Raises InvalidRequestError for an unknown name."""
    from trtconv.check.gate.baseline import parse_ratios

    return Gate(parse_budgets(budgets), baseline, update, parse_ratios(ratios), in_turn)


def apply_gate(report: CheckReport, request: CheckRequest, gate: Gate, progress: Progress) -> CheckReport:
    """The report with a finding of kind `budget` for everything that is over a limit, and what was measured.

    With `gate.update` a report without errors becomes the baseline. An engine that cannot run here is not measured;
    its budgets are errors of kind `environment` unless the request allows that.
    """
    names = [name for name, _, _ in gate.budgets.limits()]
    baseline = None if gate.baseline is None or gate.update else read_baseline(gate.baseline, gate.ratios)
    if gate.baseline is not None:
        names += [
            *ALWAYS,
            *(OF_ENGINES if is_engine(request.subject) else ()),
            *(baseline.measured if baseline else ()),
        ]
        names += [LATENCY + "opt"] * (not any(n.startswith(LATENCY) for n in names))
    if gate.in_turn is not None:
        points = [name.removeprefix(LATENCY) for name in names if name.startswith(LATENCY)] or ["opt"]
        points = list(dict.fromkeys(points))
        report = compare_in_turn(report, request, gate.in_turn, points, gate.ratios["latency_ms"], progress)
    if not names:
        return report
    measured = measure_subject(request, names, progress)
    findings, rows = _judge(report, request, gate.budgets, baseline, measured)
    for pause in PAUSES:
        failed = {row["name"].removesuffix(AGAINST) for row in rows if not row["passed"]}
        slow = [name for name in measured.values if name.startswith(LATENCY) and name in failed]
        if not slow:
            break
        progress.phase(f"too slow, so measured again: {', '.join(slow)}")
        time.sleep(pause)
        measured = dataclasses.replace(measured, values=measure_again(request, measured.values, slow))
        findings, rows = _judge(report, request, gate.budgets, baseline, measured)
    judged = _with(report, findings, rows, measured, baseline)
    if gate.update and gate.baseline is not None:
        return _update(judged, gate.baseline)
    return judged


def _judge(
    report: CheckReport, request: CheckRequest, budgets: Budgets, baseline: Baseline | None, measured: GateMeasurements
) -> tuple[tuple[Finding, ...], list[dict[str, Any]]]:
    """Findings and rows of the budgets, then of the baseline."""
    findings, rows = judge_budgets(
        budgets, measured.values, measured.missing, unmeasured_is_error=not request.allow_unrunnable
    )
    if baseline is None:
        return findings, rows
    more, against = compare_with_baseline(report, measured.values, baseline)
    return (*findings, *more), [*rows, *against]


def _with(
    report: CheckReport,
    findings: tuple[Finding, ...],
    rows: list[dict[str, Any]],
    measured: GateMeasurements,
    baseline: Baseline | None,
) -> CheckReport:
    extras = {
        **report.extras,
        "budgets": [*rows, *report.extras.get("budgets", ())],
        "measured": {n: m.as_dict() for n, m in measured.values.items()},
    }
    if baseline is not None:
        extras["history"] = list(baseline.history)
    return dataclasses.replace(report, findings=(*report.findings, *findings), extras=extras)


def _update(report: CheckReport, path: Path) -> CheckReport:
    """Write the report as the baseline, with what was measured for those that the file held before."""
    if not report.passed:
        finding = Finding("warning", "budget", f"the baseline '{path}' is unchanged: the new report fails")
        return dataclasses.replace(report, findings=(*report.findings, finding))
    try:
        earlier = read_baseline(path).history if path.is_file() else ()
    except InvalidRequestError:  # what is replaced may be damaged
        earlier = ()
    require_report_or_nothing(path, damaged=True)
    history = [*earlier, _entry(report)][-MOST_HISTORY:]
    report = dataclasses.replace(report, extras={**report.extras, "history": history})
    write_json(path, report_dict(report))
    return report


def _entry(report: CheckReport) -> dict[str, Any]:
    return {
        "when": datetime.datetime.now(datetime.timezone.utc).date().isoformat(),
        "environment": dict(report.environment),
        "measured": {name: entry["value"] for name, entry in report.extras["measured"].items()},
    }
