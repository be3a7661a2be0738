"""Writing the reports that were asked for."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path

from trtconv.check.reporters.json_report import report_dict
from trtconv.core.artifacts import write_json
from trtconv.core.report import CheckReport


def write_reports(report: CheckReport, *, json: Path | None = None) -> None:
    """Write each report that has a path; `-` is stdout."""
    if json is not None:
        if str(json) == "-":
            sys.stdout.write(json_module.dumps(report_dict(report), indent=1, sort_keys=True) + "\n")
        else:
            write_json(json, report_dict(report))
