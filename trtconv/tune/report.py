"""The report of a search: the pages of a check, with the evidence in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trtconv.check.environment import environment
from trtconv.check.reporters import write_reports
from trtconv.core.artifacts import beside
from trtconv.core.report import CheckReport, Finding
from trtconv.core.tolerance import NO_LIMITS


def write_tune_report(model: Path, facts: Mapping[str, Any], notes: Sequence[str]) -> tuple[Path, ...]:
    """Write `model.report.html` and `.json` beside a model; returns their paths."""
    findings = [Finding("note", "tune", text) for text in notes]
    if "not known" in facts["speed"]:
        hint = "run tune on a machine with a GPU"
        findings.insert(0, Finding("warning", "tune", f"the speed is {facts['speed']}", hint))
    if not facts["complete"]:
        text = "the budget ended the search; a larger set may keep the contract"
        findings.insert(0, Finding("warning", "tune", text, "give it more --minutes"))
    report = CheckReport(
        subject=str(model),
        subject_kind="onnx",
        reference="the user's data",
        runner="trtconv tune",
        tolerance=NO_LIMITS,
        comparisons=(),
        findings=tuple(findings),
        environment=environment(),
        extras={"tune": dict(facts)},
        static=True,
    )
    paths = {"html": beside(model, ".report.html"), "json": beside(model, ".report.json")}
    write_reports(report, **paths)
    return tuple(paths.values())
