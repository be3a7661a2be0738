"""Which of many groups a builder gets wrong, in few builds: `tune` and `check --heal` look for them alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

Result = TypeVar("Result")
Groups = tuple[str, ...]
# Each try is a build.
MOST = 10


def largest_that_holds(
    groups: Groups, measure: Callable[[Groups], Result], holds: Callable[[Result], bool], most: int = MOST
) -> list[Result]:
    """What was measured on the way to a large part of the groups with which an engine holds; maybe none does.

    The groups are halved: a part that holds beside those before it stays, one that does not is halved again. One guilty
    group among n costs about 2 log2(n) calls of `measure`, of which there are at most `most`.
    """
    results: list[Result] = []
    chosen: set[str] = set()
    parts = _halves(groups)
    while parts and len(results) < most:
        part = parts.pop(0)
        wider = chosen.union(part)
        result = measure(tuple(g for g in groups if g in wider))
        results.append(result)
        if holds(result):
            chosen = wider
        elif len(part) > 1:
            parts[:0] = _halves(part)
    return results


def _halves(groups: Groups) -> list[Groups]:
    middle = len(groups) // 2
    return [half for half in (groups[:middle], groups[middle:]) if half and len(groups) > 1]
