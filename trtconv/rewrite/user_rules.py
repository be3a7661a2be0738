"""Rules of the user's own: `--rules my_rules.py`, a Python file that defines `RULES`, a tuple of Rule."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.rewrite.rule import Rule


def load_rules(files: Sequence[Path]) -> tuple[Rule, ...]:
    """The rules of these files, in order. Raises InvalidRequestError when a file fails or defines no `RULES`."""
    return tuple(rule for file in files for rule in _load(file))


def _load(file: Path) -> tuple[Rule, ...]:
    require_file(file, "rule file")
    spec = importlib.util.spec_from_file_location(f"trtconv_user_rules_{file.stem}", file)
    if spec is None or spec.loader is None:
        raise InvalidRequestError(f"'{file}' is no Python file", hint="name a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise InvalidRequestError(
            f"the rule file '{file}' fails: {type(error).__name__}: {error}", hint="run it with Python to see where"
        ) from error
    rules = getattr(module, "RULES", None)
    if not isinstance(rules, (tuple, list)) or not rules or not all(isinstance(r, Rule) for r in rules):
        raise InvalidRequestError(
            f"the rule file '{file}' defines no rules",
            hint="end it with RULES = (Rule(...),); docs/how-to/write-a-rule.md",
        )
    return tuple(rules)
