"""GitLab's Code Quality report: what a merge request shows beside the line of the PyTorch source.

The fields are those of docs.gitlab.com, "Code Quality", "Import code quality results from a CI/CD job".
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from trtconv.check.reporters.problems import Problem, problems, relative_path
from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_json
from trtconv.core.report import CheckReport

SEVERITIES = {"error": "major", "warning": "minor", "note": "info"}


def code_quality(report: CheckReport) -> list[dict[str, Any]]:
    """One entry per problem. Where no line is known, it stands at the first line of the subject's file."""
    return [_entry(problem, report) for problem in problems(report)]


def _entry(problem: Problem, report: CheckReport) -> dict[str, Any]:
    parts = (problem.message, problem.location, problem.hint)
    return {
        "description": "; ".join(part for part in parts if part),
        "check_name": f"trtconv/{problem.kind}",
        "fingerprint": _fingerprint(problem, report),
        "severity": SEVERITIES.get(problem.level, "info"),
        "location": {
            "path": relative_path(problem.file or report.subject),
            "lines": {"begin": max(1, problem.line)},
        },
    }


def _fingerprint(problem: Problem, report: CheckReport) -> str:
    """Equal for the same problem of two runs; where no place is known, its words tell it from the others."""
    location = (problem.file, problem.module, problem.node)
    identifying = location if any(location) else (problem.message,)
    identity = "\0".join((relative_path(report.subject), problem.kind, problem.level, *identifying))
    return hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest()


def write_code_quality(report: CheckReport, path: Path) -> None:
    """Write the report as Code Quality JSON."""
    write_report_json(path, code_quality(report))


REPORTER = Reporter("gl-code-quality", "Write GitLab's Code Quality JSON.", ".gl-code-quality.json", write_code_quality)
