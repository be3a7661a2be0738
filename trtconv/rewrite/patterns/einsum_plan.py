"""Reading an Einsum equation: one letter per axis of each operand, ellipses written out."""

from __future__ import annotations

import re
from dataclasses import dataclass

# One ellipsis at most: two would give one axis two letters.
_TERM = re.compile(r"[A-Za-z]*(\.\.\.[A-Za-z]*)?")
SPARE = "ZYXWVUTSRQPONMLKJIHGFEDCBA"


@dataclass(frozen=True)
class ContractionPlan:
    """Labels per operand and of the result. `special` is what older TensorRT cannot parse."""

    terms: tuple[str, ...]
    result: str
    special: bool


def plan_of(equation: str, ranks: list[int]) -> ContractionPlan | None:
    """The plan, or None when the equation does not fit the ranks."""
    text = equation.replace(" ", "")
    left, arrow, right = text.partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks) or not all(map(_TERM.fullmatch, (*terms, right))):
        return None
    spare = [c for c in SPARE if c not in text]
    widths = [r - len(t.replace("...", "")) for t, r in zip(terms, ranks, strict=True)]
    if any(w < 0 or (w and "..." not in t) for w, t in zip(widths, terms, strict=True)):
        return None
    widest = max(widths)
    named = "".join(spare[:widest])
    full = tuple(t.replace("...", named[widest - w :]) for t, w in zip(terms, widths, strict=True))
    everything = "".join(full)
    if not arrow:
        once = sorted(c for c in set(everything) if everything.count(c) == 1 and c not in named)
        right = "..." + "".join(once) if "..." in left else "".join(once)
    result = right.replace("...", named)
    if any(c not in everything for c in result):
        return None
    diagonal = any(len(set(t)) != len(t) for t in full)
    return ContractionPlan(full, result, "..." in text or diagonal or len(terms) > 2)
