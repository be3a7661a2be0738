"""What a reader of a passed check has to know beside the word: what was left out, and what a pass does not show."""

from __future__ import annotations

from trtconv.core.report import CheckReport


def remarks(report: CheckReport) -> str:
    """What follows the verdict, with its comma: `, sources not compared (--no-source-check)`; empty without caveats."""
    words = []
    if report.extras.get("sources", {}).get("status") == "not compared":
        words.append("sources not compared (--no-source-check)")
    return "".join(f", {w}" for w in words)
