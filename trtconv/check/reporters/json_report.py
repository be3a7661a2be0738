"""The report as JSON; `SCHEMA` of core.report is its version."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_json
from trtconv.core.report import SCHEMA, CheckReport


def report_dict(report: CheckReport) -> dict[str, Any]:
    """Plain data, described by report.schema.json."""
    return {
        "schema": SCHEMA,
        "kind": "check",
        "passed": report.passed,
        "subject": report.subject,
        "subject_kind": report.subject_kind,
        "reference": report.reference,
        "original": report.original,
        "runner": report.runner,
        "tolerance": asdict(report.tolerance),
        "comparisons": [c.as_dict() for c in report.comparisons],
        "advisory": [c.as_dict() for c in report.advisory],
        "findings": [asdict(f) for f in report.findings],
        "seconds": round(report.seconds, 3),
        "environment": dict(report.environment),
        "extras": dict(report.extras),
    }


def write_json_report(report: CheckReport, path: Path) -> None:
    """Write the report as JSON."""
    write_report_json(path, report_dict(report))


# Programs read it, and JSON escapes by itself.
REPORTER = Reporter(
    "json",
    "The report as JSON, on stdout or into FILE.",
    ".report.json",
    write_json_report,
    shown=False,
    metavar="[=FILE]",
    example="--json=report.json",
)
