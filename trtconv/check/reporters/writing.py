"""Writing the requested reports."""

from __future__ import annotations

from pathlib import Path

from trtconv.core.report import CheckReport
from trtconv.core.text.display import displayable


def write_reports(report: CheckReport, **destinations: Path) -> None:
    """Write a report in each format named, by the name of its `Reporter`; `-` is stdout.

    Raises InvalidRequestError where a file cannot be written, KeyError for a format that there is not.
    """
    from trtconv.check.reporters.registry import REPORTERS

    formats = {r.name: r for r in REPORTERS}
    shown = displayable(report)
    for name, path in destinations.items():
        reporter = formats[name]
        reporter.write(shown if reporter.shown else report, path)
