"""The sweep as Markdown, for GitHub's step summary."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trtconv.check.reporters.github import SUMMARY
from trtconv.check.reporters.markdown import cell_text, table
from trtconv.core.errors import InvalidRequestError
from trtconv.sweep.atlas.badge import count_states
from trtconv.sweep.atlas.changes import CellChange
from trtconv.sweep.engine.verdicts import CellVerdict

MOST_ROWS = 30
_SIGNS = {"green": "✅", "amber": "⚠️", "red": "❌", "open": "⏳"}


def markdown_text(name: str, verdicts: Sequence[CellVerdict], changes: Sequence[CellChange]) -> str:
    """Counts, what changed, the red cells."""
    counts = count_states(verdicts)
    mark = _SIGNS[next((s for s in ("red", "open", "amber") if counts[s]), "green")]
    parts = [f"### {mark} {cell_text(name)}: " + ", ".join(f"{n} {state}" for state, n in counts.items() if n)]
    if changes:
        rows: list[tuple[str, ...]] = [(c.kind, cell_text(c.cell), cell_text(c.text)) for c in changes]
        parts.append(table(("since the last sweep", "cell", ""), _cut(rows)))
    red = [v for v in verdicts if v.state == "red"]
    if red:
        rows = [(cell_text(v.cell.id), cell_text(v.reason), cell_text(_first_line(v.message))) for v in red]
        parts.append(table(("red", "why", ""), _cut(rows)))
    return "\n\n".join(parts) + "\n"


def _cut(rows: list[tuple[str, ...]]) -> list[tuple[str, ...]]:
    left = len(rows) - MOST_ROWS
    return rows if left <= 0 else [*rows[:MOST_ROWS], (f"and {left} more", "", "")]


def _first_line(text: str) -> str:
    return text.split("\n", 1)[0]


def append_summary(text: str, environment: Mapping[str, str] | None = None) -> Path | None:
    """Append to the step summary; None outside GitHub Actions. Raises InvalidRequestError when that cannot be done."""
    name = (os.environ if environment is None else environment).get(SUMMARY)
    if not name:
        return None
    try:
        with open(name, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")
    except OSError as error:
        raise InvalidRequestError(
            f"the step summary '{name}' cannot be written: {error.strerror}",
            hint="GITHUB_STEP_SUMMARY names it; without that variable no summary is written",
        ) from error
    return Path(name)
