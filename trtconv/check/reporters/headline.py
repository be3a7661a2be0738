"""The verdict of a report in one sentence, the same for every format: what was proved, and what was not run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from trtconv.check.reporters.caveats import engine_not_run, is_weak, remarks
from trtconv.core.report import CheckReport

# The unit of errors in every format: an error over the magnitude of the element's column and its own value.
ERROR_UNIT = "scale + |x|"
GRAPH_ALONE = "graph equal, engine not run"


@dataclass(frozen=True)
class Headline:
    """`state`: good, bad, or open for what holds but shows less than it should. `text` is a sentence about a subject
    whose name stands before it, `word` the verdict in lower case.
    """

    state: Literal["good", "open", "bad"]
    word: str
    text: str


def headline(report: CheckReport) -> Headline:
    """What the report comes to, such as passed: `equals the module at 12 sample points`."""
    if report.static:
        return _static(report)
    points = len({c.point for c in report.comparisons})
    bad = len({c.point for c in report.comparisons if not c.passed})
    if not report.comparisons:
        return Headline("bad" if report.errors else "open", "not checked", f"was not compared with {report.original}")
    if bad:
        return Headline("bad", "failed", f"differs from {report.original} at {bad} of {points} sample points")
    equal = f"equals {report.original} at {points} sample point{'s' * (points != 1)}"
    if report.errors:
        count = len(report.errors)
        others = "1 other error was found" if count == 1 else f"{count} other errors were found"
        return Headline("bad", "failed", f"{equal}, but {others}")
    if engine_not_run(report):
        text = f"is the engine's graph and {equal}; the engine itself was built but not run on this machine"
        return Headline("open", GRAPH_ALONE, text + remarks(report))
    return Headline("open" if is_weak(report) else "good", "passed", equal + remarks(report))


def _static(report: CheckReport) -> Headline:
    if report.passed:
        return Headline("good", "passed", f"has no node that is refused, judged by {report.runner}; nothing was run")
    count = len(report.errors)
    text = f"has {count} error{'s' * (count != 1)}, judged by {report.runner}; nothing was run"
    return Headline("bad", "failed", text)
