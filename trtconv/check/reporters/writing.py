"""Writing the reports that were asked for."""

from __future__ import annotations

import sys
from pathlib import Path

from trtconv.check.reporters.json_report import report_dict
from trtconv.core.artifacts import write_report_json, write_report_text
from trtconv.core.display import displayable
from trtconv.core.report import CheckReport


def write_reports(
    report: CheckReport, *, json: Path | None = None, junit: Path | None = None, sarif: Path | None = None,
    html: Path | None = None, markdown: Path | None = None, github: bool = False,
) -> None:  # fmt: skip
    """Write each report that has a path; `-` is stdout. Raises InvalidRequestError."""
    if json is not None:
        write_report_json(json, report_dict(report))
    # JSON is read by programs and escapes by itself; the rest is looked at.
    report = displayable(report)
    if junit is not None:
        from trtconv.check.reporters.junit import junit_xml

        write_report_text(junit, junit_xml(report))
    if sarif is not None:
        from trtconv.check.reporters.sarif import sarif_dict

        write_report_json(sarif, sarif_dict(report))
    if markdown is not None:
        from trtconv.check.reporters.markdown import markdown_text

        write_report_text(markdown, markdown_text(report))
    if html is not None:
        from trtconv.check.reporters.html.report import html_text

        write_report_text(html, html_text(report))
    if github:
        from trtconv.check.reporters.github import annotation_lines, append_summary

        sys.stdout.write("".join(line + "\n" for line in annotation_lines(report)))
        append_summary(report)
