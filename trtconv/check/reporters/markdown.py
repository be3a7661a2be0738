"""Markdown for a pull-request comment and for GitHub's step summary."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from trtconv.check.reporters.caveats import missed_lines, power_line
from trtconv.check.reporters.headline import ERROR_UNIT, headline
from trtconv.check.reporters.problems import problems, worst_of
from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_text
from trtconv.core.report import CheckReport

MOST_PROBLEMS = 20


def markdown_text(report: CheckReport) -> str:
    """Verdict, a row per output, the problems, the measured numbers with their limits, the environment."""
    parts = (_verdict, _outputs, _problems, _limits, _power, _environment)
    return "\n\n".join(text for text in (part(report) for part in parts) if text) + "\n"


def _verdict(report: CheckReport) -> str:
    head = headline(report)
    mark = {"good": "✅", "open": "⚠️", "bad": "❌"}[head.state]
    return f"### {mark} `{_code(report.subject)}` {head.text}"


def _outputs(report: CheckReport) -> str:
    if not report.comparisons:
        return ""
    rows = []
    for name in dict.fromkeys(c.output for c in report.comparisons):
        results = tuple(c for c in report.comparisons if c.output == name)
        worst = worst_of(results)
        failed = sum(not r.passed for r in results)
        rows.append(
            (
                f"`{_code(name)}`",
                f"{len(results) - failed} of {len(results)}",
                _number(worst.max_abs),
                _number(worst.max_scaled),
                _number(worst.cosine, "{:.6f}"),
                cell_text(worst.point),
            )
        )
    heads = ("output", "points equal", "max abs error", f"of {cell_text(ERROR_UNIT)}", "cosine", "worst at")
    allowed = f"{report.tolerance}, {report.runner}"
    return table(heads, rows) + f"\n\n<sub>{cell_text(allowed)}</sub>"


def _problems(report: CheckReport) -> str:
    signs = {"error": "❌", "warning": "⚠️", "note": "ℹ️"}
    sorted_problems = problems(report)
    lines = []
    for problem in sorted_problems[:MOST_PROBLEMS]:
        location = f"  \n  at `{_code(problem.location)}`" if problem.location else ""
        hint = f"  \n  → {cell_text(problem.hint)}" if problem.hint else ""
        text = cell_text(problem.message)
        lines.append(f"- {signs.get(problem.level, '')} **{problem.kind}** {text}{location}{hint}")
    if len(sorted_problems) > MOST_PROBLEMS:
        lines.append(f"- and {len(sorted_problems) - MOST_PROBLEMS} more")
    return "\n".join(lines)


def _limits(report: CheckReport) -> str:
    rows = [
        (*(cell_text(str(b[key])) for key in ("name", "measured", "limit")), "✅" if b["passed"] else "❌")
        for b in report.extras.get("budgets", ())
    ]
    return table(("budget", "measured", "limit", ""), rows) if rows else ""


def _power(report: CheckReport) -> str:
    if not power_line(report):
        return ""
    listed = "\n".join(f"- missed: {cell_text(line)}" for line in missed_lines(report))
    return f"**power** {cell_text(power_line(report))}" + (f"\n\n{listed}" if listed else "")


def _environment(report: CheckReport) -> str:
    text = ", ".join(f"{k} {v}" for k, v in report.environment.items())
    return f"<sub>{cell_text(text)}, {report.seconds:.1f} s</sub>" if text else ""


def table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table."""
    listed = [tuple(heads), *(tuple(r) for r in rows)]
    lines = ["| " + " | ".join(row) + " |" for row in listed]
    lines.insert(1, "|" + " --- |" * len(listed[0]))
    return "\n".join(lines)


def _number(value: float | None, form: str = "{:.2g}") -> str:
    return "-" if value is None else form.format(value)


def cell_text(text: str) -> str:
    """Text that cannot break out of its cell, nor be read as HTML."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace("|", "\\|").replace("\n", " ")


def _code(text: str) -> str:
    return text.replace("`", "'").replace("\n", " ").replace("|", "\\|")


def write_markdown(report: CheckReport, path: Path) -> None:
    """Write the report as Markdown."""
    write_report_text(path, markdown_text(report))


REPORTER = Reporter("markdown", "Write Markdown for a pull request.", ".report.md", write_markdown)
