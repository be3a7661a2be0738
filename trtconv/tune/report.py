"""The report of a search: the pages of a check, with the evidence in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from trtconv.check.reporters import write_reports
from trtconv.check.room import environment
from trtconv.core.artifacts import beside
from trtconv.core.report import CheckReport, Finding
from trtconv.core.tolerance import NO_LIMITS


def write_tune_report(model: Path, output: Path, facts: Mapping[str, Any], notes: Sequence[str]) -> None:
    """Write `model.report.html` and `.json` beside a model that will lie in `output`."""
    findings = [Finding("note", "tune", text) for text in notes]
    if "not known" in facts["speed"]:
        findings.insert(
            0, Finding("warning", "tune", f"the speed is {facts['speed']}", "run tune on a machine with a GPU")
        )
    if not facts["complete"]:
        findings.insert(
            0, Finding("warning", "tune", "the search ended with its budget, and not with its end", "--minutes")
        )
    report = CheckReport(
        subject=str(model), subject_kind="onnx", reference="the user's data", runner="trtconv tune",
        tolerance=NO_LIMITS, comparisons=(), findings=tuple(findings), environment=environment(),
        extras={"tune": dict(facts)}, static=True,
    )  # fmt: skip
    write_reports(report, html=beside(model, ".report.html"))
    write_reports(replace(report, subject=str(output / model.name)), json=beside(model, ".report.json"))
