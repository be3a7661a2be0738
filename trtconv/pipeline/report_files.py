"""The report of a conversion, beside its engine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtconv.core.artifacts import beside
from trtconv.core.errors import TrtconvError
from trtconv.core.report import CheckReport


@contextmanager
def reported_if_it_fails(report: CheckReport, engine: Path) -> Iterator[None]:
    """Write the report when the block fails; what comes after the block writes it with what the engine came to."""
    try:
        yield
    except TrtconvError:
        write_report(report, engine)
        raise


def write_report(report: CheckReport, engine: Path) -> Path:
    """Write the report of a conversion, as JSON and as one HTML file, beside the engine; returns the HTML's path."""
    from trtconv.check.reporters import write_reports

    html = beside(engine, ".report.html")
    write_reports(report, json=beside(engine, ".report.json"), html=html)
    return html
