"""An engine that is wrong although its graph is right: which groups the builder gets wrong, what is left without."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from trtconv.tune.candidates import Candidate

Result = TypeVar("Result")
# Each takes a build, and a look at the judging part.
MOST = 10


def largest_that_holds(
    candidate: Candidate, measure: Callable[[Candidate], Result], holds: Callable[[Result], bool]
) -> list[Result]:
    """What was measured on the way to a large part of a candidate's groups whose engine holds; maybe none does.

    The groups are halved: a part that holds beside those before it stays, one that does not is halved again. One guilty
    group among n costs about 2 log2(n) builds.
    """
    results: list[Result] = []
    chosen: set[str] = set()
    parts = _halves(candidate.groups)
    while parts and len(results) < MOST:
        part = parts.pop(0)
        wider = chosen.union(part)
        result = measure(replace(candidate, groups=tuple(g for g in candidate.groups if g in wider)))
        results.append(result)
        if holds(result):
            chosen = wider
        elif len(part) > 1:
            parts[:0] = _halves(part)
    return results


def _halves(groups: tuple[str, ...]) -> list[tuple[str, ...]]:
    middle = len(groups) // 2
    return [half for half in (groups[:middle], groups[middle:]) if half and len(groups) > 1]
