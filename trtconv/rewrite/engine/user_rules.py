"""Rules of the user's own: `--rules my_rules.py`, a Python file that defines `RULES`, a tuple of Rule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.python_file import load_python
from trtconv.rewrite.engine.rule import Rule


def load_rules(files: Sequence[Path]) -> tuple[Rule, ...]:
    """The rules of these files, in order. Raises InvalidRequestError when a file fails or defines no `RULES`."""
    return tuple(rule for file in files for rule in _load(file))


def _load(file: Path) -> tuple[Rule, ...]:
    rules = getattr(load_python(file, "rule file"), "RULES", None)
    if not isinstance(rules, (tuple, list)) or not rules or not all(isinstance(r, Rule) for r in rules):
        raise InvalidRequestError(
            f"the rule file '{file}' defines no rules",
            hint="end it with RULES = (Rule(...),); see `trtconv help write-a-rule`",
        )
    return tuple(rules)
