"""The rules, in the order in which they are applied. A rule is one file here and one line in `RULES`."""

from __future__ import annotations

from trtconv.rewrite.rule import Rule
from trtconv.rewrite.rules import l2norm, pool_whole_axis, resize_by_size

RULES: tuple[Rule, ...] = (
    pool_whole_axis.RULE,
    resize_by_size.RULE,
    l2norm.RULE,
)
