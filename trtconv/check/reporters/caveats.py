"""What a reader of a passed check has to know beside the word: what was left out, and what a pass does not show."""

from __future__ import annotations

from typing import Any

from trtconv.core.report import ENGINE_NOT_RUN, CheckReport

MOST_MISSED = 10


def remarks(report: CheckReport) -> str:
    """What follows the verdict, with its comma: `, sources not compared (--no-source-check)`; empty without caveats."""
    words = []
    if report.extras.get("sources", {}).get("status") == "not compared":
        words.append("sources not compared (--no-source-check)")
    if is_weak(report):
        words.append("but it shows little: see the warnings")
    return "".join(f", {w}" for w in words)


def engine_not_run(report: CheckReport) -> bool:
    """True when an engine belongs to the verdict that this machine could not run: only its graph was compared."""
    notes = (f.message for f in report.findings if f.kind == "environment" and f.level == "note")
    return any(message.startswith(ENGINE_NOT_RUN) for message in notes)


def is_weak(report: CheckReport) -> bool:
    """True when wrong outputs could have passed: one that a constant equals, or many small faults that are missed."""
    return any(f.kind == "power" and f.level == "warning" for f in report.findings)


def power_line(report: CheckReport) -> str:
    """`38 of 38 small faults reported (...)`; empty when no faults were tried."""
    return str(report.extras.get("power", {}).get("line", ""))


def missed_lines(report: CheckReport) -> tuple[str, ...]:
    """The faults that the check misses, the largest first: where they are, what they are, how much they change."""
    missed: list[dict[str, Any]] = report.extras.get("power", {}).get("missed", [])
    lines = [f"{_place(m)}: {m['detail']}, changes '{m['output']}' by {_size(m)}" for m in missed[:MOST_MISSED]]
    if len(missed) > MOST_MISSED:
        lines.append(f"and {len(missed) - MOST_MISSED} more, see --json")
    return tuple(lines)


def _place(missed: dict[str, Any]) -> str:
    where = " ".join(w for w in (missed["module"], f"({missed['source']})" if missed["source"] else "") if w)
    return f"{where or missed['node'] or 'a node without a name'} [{missed['op']}]"


def _size(missed: dict[str, Any]) -> str:
    size = missed["size"]
    return f"{size:.1e} of its scale" if isinstance(size, float) else "another shape or end"
