"""The page of rules, `docs/reference/rules.md`, made from the rules themselves.

`python -m trtconv.rewrite.engine.page docs/reference/rules.md` writes it; a test compares.
"""

from __future__ import annotations

import sys
from pathlib import Path

from trtconv.core.artifacts import write_text
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.tolerance import NO_LIMITS
from trtconv.rewrite.engine.rule import Rule
from trtconv.rewrite.rules import RULES

HEAD = """# Rewrite rules

This page is generated from the rules (`python -m trtconv.rewrite.engine.page docs/reference/rules.md`); do not edit it.

Rules are applied in this order, round by round, until none fires. Each rewrite is proved where it happens: the nodes
before and after are run at shapes of the recorded shape space, with random, zero and large values; one that differs
is taken back. `trtconv rewrite --explain` shows what fired and why, and what did not and why not.

| rule | targets | why |
|---|---|---|
"""


def page() -> str:
    """The page as Markdown."""
    table = "".join(f"| [{r.name}](#{r.name}) | {_targets(r)} | {r.why} |\n" for r in RULES)
    return HEAD + table + "".join(_section(r) for r in RULES)


def _targets(rule: Rule) -> str:
    needed = [t for t in KNOWN_TARGETS if rule.needed(parse_target(t))]
    text = "all" if len(needed) == len(KNOWN_TARGETS) else ", ".join(needed)
    if rule.precisions:
        text += f", in {' and '.join(rule.precisions)}"
    return f"{text}, with `--plugins`" if rule.plugin else text


def _section(rule: Rule) -> str:
    doc = (sys.modules[rule.find.__module__].__doc__ or "").strip()
    lines = [
        f"\n## {rule.name}\n\n{doc}\n",
        f"Looks at: {', '.join(f'`{op}`' for op in rule.ops)}.",
        f" Not proved: {rule.unproved}." if rule.unproved else "",
        f" Held to {rule.tolerance or NO_LIMITS}",
        " against the part before in FP32.\n" if rule.judged_as_float32 else ".\n",
        f"\n```\nbefore  {rule.before}\nafter   {rule.after}\n```\n",
    ]
    return "".join(lines)


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), page())
