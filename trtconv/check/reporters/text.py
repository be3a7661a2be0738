"""The report for a terminal; the same text without styling elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.check.reporters.caveats import missed_lines, power_line
from trtconv.check.reporters.headline import ERROR_UNIT, headline
from trtconv.check.reporters.problems import problems
from trtconv.core.report import CheckReport, OutputComparison
from trtconv.proof.comparison import describe_failure

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

HEADINGS = ("output", "points", "max abs", "max rel", f"of {ERROR_UNIT}", "cosine", "mismatched", "worst at")


def print_report(report: CheckReport, console: Console) -> None:
    """Print the verdict, one row per output, what failed first, and the findings."""
    from rich.markup import escape

    from trtconv.core.text.display import displayable

    report = displayable(report)
    if report.comparisons:
        console.print(_table(report))
    for failure in [c for c in report.comparisons if not c.passed][:10]:
        console.print(f"[red]differs[/red]  {escape(describe_failure(failure))}")
    for problem in problems(report):
        colour = {"error": "red", "warning": "yellow"}.get(problem.level, "dim")
        location = f"\n  at {problem.location}" if problem.location else ""
        hint = f"\n  -> {problem.hint}" if problem.hint else ""
        console.print(f"[{colour}]{problem.level}[/{colour}]  {escape(problem.message + location + hint)}")
    for row in report.extras.get("budgets", ()):
        console.print(_budget(row))
    if power_line(report):
        colour = "yellow" if missed_lines(report) else "green"
        console.print(f"[{colour}]power[/{colour}]   {escape(power_line(report))}")
    for line in missed_lines(report):
        console.print(f"[dim]missed[/dim]  {escape(line)}")
    colour, word, text = verdict(report)
    console.print(f"[{colour}]{word}[/{colour}]  {escape(text)}")


def _table(report: CheckReport) -> Table:
    """A row per output with its largest errors over all points."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading in ("output", "worst at") else "right")
    for name in dict.fromkeys(c.output for c in report.comparisons):
        table.add_row(*(escape(cell) for cell in _row([c for c in report.comparisons if c.output == name])))
    return table


def _budget(row: Mapping[str, Any]) -> str:
    from rich.markup import escape

    word = "open" if row.get("value") is None else "within" if row["passed"] else "over"
    colour = "red" if not row["passed"] else "dim" if word == "open" else "green"
    shown = f"{row['name']} {row['measured']}, limit {row['limit']}"
    return f"[{colour}]{word:<6}[/{colour}]  {escape(shown)}"


def _row(results: list[OutputComparison]) -> tuple[str, ...]:
    def top(field: str) -> str:
        numbers = [v for v in (getattr(r, field) for r in results) if v is not None]
        return f"{max(numbers):.2g}" if numbers else "-"

    cosines = [r.cosine for r in results if r.cosine is not None]
    worst = max(results, key=lambda r: (not r.passed, -1.0 if r.max_scaled is None else r.max_scaled))
    return (
        results[0].output,
        str(len({r.point for r in results})),
        top("max_abs"),
        top("max_rel"),
        top("max_scaled"),
        f"{min(cosines):.6f}" if cosines else "-",
        top("mismatched"),
        f"{list(worst.at)} at {worst.point}",
    )


def verdict(report: CheckReport) -> tuple[str, str, str]:
    """Colour and words: `PASSED`, `model.engine equals the module at 12 sample points (...)`."""
    head = headline(report)
    allowed = f" ({report.tolerance}, {report.runner})" if report.comparisons else ""
    colour = {"good": "green", "open": "yellow", "bad": "red"}[head.state]
    return colour, head.word.upper(), f"{report.subject} {head.text}{allowed}"
