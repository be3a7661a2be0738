"""What is wrong, one entry per thing to fix: the same list for SARIF, GitHub annotations, Markdown and HTML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from trtconv.core.report import CheckReport, OutputComparison
from trtconv.proof.comparison import describe_failure

_PLACE = re.compile(r"(?P<file>.+?):(?P<line>\d+)(?::\d+)?\Z")


@dataclass(frozen=True)
class Problem:
    """`kind` is an error kind (`accuracy`, `budget`, ...); `file` is empty and `line` 0 where the line is unknown."""

    level: str
    kind: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    module: str = ""
    node: str = ""

    @property
    def location(self) -> str:
        """`net.py:42 in backbone.conv1, node /conv1/Conv`, with the parts that are known."""
        parts = [f"{self.file}:{self.line}" if self.file else "", f"in {self.module}" if self.module else ""]
        source_text = " ".join(p for p in parts if p)
        return ", ".join(w for w in (source_text, f"node {self.node}" if self.node else "") if w)


def split_source(source: str) -> tuple[str, int]:
    """`net.py:42` as (`net.py`, 42); (``, 0) for any other text."""
    match = _PLACE.match(source)
    return (match["file"], int(match["line"])) if match else ("", 0)


def relative_path(path: str) -> str:
    """A path inside the working directory relative to it, with slashes, as code hosts expect."""
    file_path = Path(path)
    if file_path.is_absolute() and file_path.is_relative_to(Path.cwd()):
        file_path = file_path.relative_to(Path.cwd())
    return file_path.as_posix()


def problems(report: CheckReport) -> tuple[Problem, ...]:
    """Errors first, the cause of a difference before the outputs that it reaches, then warnings, then notes.

    An output that differs at several points is one problem.
    """
    collected = [_output_problem(report, name) for name in failing_outputs(report)]
    for finding in report.findings:
        file, line = split_source(finding.source)
        collected.append(
            Problem(
                finding.level, finding.kind, finding.message, finding.hint, file, line, finding.module, finding.node
            )
        )
    order = {"error": 0, "warning": 1, "note": 2}
    causes = {f.message for f in report.findings if f.kind == "accuracy" and f.node}
    return tuple(sorted(collected, key=lambda p: (order.get(p.level, 3), p.message not in causes)))


def failing_outputs(report: CheckReport) -> tuple[str, ...]:
    """Names of the outputs that differ somewhere."""
    return tuple(dict.fromkeys(c.output for c in report.comparisons if not c.passed))


def worst_of(results: tuple[OutputComparison, ...]) -> OutputComparison:
    """A shape that differs first, then the largest error in units of the tolerance's scale."""
    return max(results, key=lambda r: (not r.passed, r.max_scaled is None, r.max_scaled or 0.0))


def _output_problem(report: CheckReport, name: str) -> Problem:
    results = tuple(c for c in report.comparisons if c.output == name)
    bad = tuple(c for c in results if not c.passed)
    places: Mapping[str, Mapping[str, str]] = report.extras.get("origins", {})
    origin = places.get(name, {})
    file, line = split_source(origin.get("source", ""))
    message = f"{describe_failure(worst_of(bad))} ({len(bad)} of {len(results)} sample points differ)"
    return Problem("error", "accuracy", message, "", file, line, origin.get("module", ""), origin.get("node", ""))
