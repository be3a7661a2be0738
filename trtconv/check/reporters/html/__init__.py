"""The report and the drawn network as HTML files that need nothing else."""

from __future__ import annotations

from pathlib import Path

from trtconv.check.reporters.reporter import Reporter
from trtconv.core.artifacts import write_report_text
from trtconv.core.report import CheckReport


def write_html(report: CheckReport, path: Path) -> None:
    """Write the report as one HTML file."""
    from trtconv.check.reporters.html.report import html_text

    write_report_text(path, html_text(report))


REPORTER = Reporter("html", "Write one offline HTML file.", ".report.html", write_html, example="--html report.html")
