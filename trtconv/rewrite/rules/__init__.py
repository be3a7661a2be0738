"""The rules, in the order in which they are applied: one file each, found in the packages of `GROUPS`."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable, Iterator

from trtconv.rewrite.engine.rule import Rule

# Say the same in a form that every size and target takes; one node of a plugin in the place of several, when the user
# asks for it; operators that no target has or one computes wrongly; those that came later than the target; forms
# that it computes faster; cleanup.
GROUPS = (
    "missing.contrib",
    "canonical",
    "plugin",
    "missing.quantized",
    "missing.spatial",
    "missing.resizing",
    "missing.selection",
    "missing.signal",
    "missing.tensor",
    "missing.recurrent",
    "missing.attention",
    "newer.layers",
    "newer.operators",
    "faster",
    "cleanup",
)


def rules_in(group: str) -> Iterator[Rule]:
    """The rules of the files of a package, in no particular order."""
    package = importlib.import_module(f"{__name__}.{group}")
    for module in pkgutil.iter_modules(package.__path__):
        rule = getattr(importlib.import_module(f"{package.__name__}.{module.name}"), "RULE", None)
        if isinstance(rule, Rule):
            yield rule


def ordered(rules: Iterable[Rule]) -> list[Rule]:
    """By name, but each after those that it names in `after`. Raises ValueError when they wait for each other."""
    waiting = sorted(rules, key=lambda r: r.name)
    names = {r.name for r in waiting}
    result: list[Rule] = []
    while waiting:
        placed = {r.name for r in result}
        following = next((r for r in waiting if names & set(r.after_rules) <= placed), None)
        if following is None:
            raise ValueError(f"these rules wait for each other: {', '.join(r.name for r in waiting)}")
        result.append(following)
        waiting.remove(following)
    return result


RULES: tuple[Rule, ...] = tuple(rule for group in GROUPS for rule in ordered(rules_in(group)))
