"""GitHub Actions: an annotation at the line of each problem, and the step summary.

Workflow commands are lines on stdout (docs.github.com, "Workflow commands for GitHub Actions"); the summary is
Markdown that is appended to the file that the variable GITHUB_STEP_SUMMARY names.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from trtconv.check.reporters.markdown import markdown_text
from trtconv.check.reporters.problems import Problem, problems, relative_path
from trtconv.check.reporters.reporter import Reporter
from trtconv.core.errors import InvalidRequestError
from trtconv.core.report import CheckReport

_COMMANDS = {"error": "error", "warning": "warning", "note": "notice"}
SUMMARY = "GITHUB_STEP_SUMMARY"


def annotation_lines(report: CheckReport) -> tuple[str, ...]:
    """One workflow command per problem."""
    return tuple(_annotation(p) for p in problems(report))


def _annotation(problem: Problem) -> str:
    file = relative_path(problem.file) if problem.file else ""
    fields = {"file": file, "line": str(problem.line or ""), "title": f"trtconv: {problem.kind}"}
    shown = ",".join(f"{k}={_property(v)}" for k, v in fields.items() if v)
    where = f" ({problem.module})" if problem.module else ""
    text = problem.message + where + (f"\n{problem.hint}" if problem.hint else "")
    return f"::{_COMMANDS.get(problem.level, 'notice')} {shown}::{_data(text)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def append_summary(report: CheckReport, environment: Mapping[str, str] | None = None) -> Path | None:
    """Append to the step summary; None outside GitHub Actions. Other steps append to the same file, so no rename."""
    name = (os.environ if environment is None else environment).get(SUMMARY)
    if not name:
        return None
    try:
        with open(name, "a", encoding="utf-8") as stream:
            stream.write(markdown_text(report) + "\n")
    except OSError as error:
        raise InvalidRequestError(
            f"the step summary '{name}' cannot be written: {error.strerror}",
            hint="GITHUB_STEP_SUMMARY names it; without that variable no summary is written",
        ) from error
    return Path(name)


def write_github(report: CheckReport, path: Path) -> None:
    """Print the annotations, and append to the step summary; there is no file."""
    sys.stdout.write("".join(line + "\n" for line in annotation_lines(report)))
    append_summary(report)


REPORTER = Reporter("github", "Write GitHub annotations and the step summary.", "", write_github)
