"""What is known of each TensorRT, in one table per target: facts, operators, and constructs that it gets wrong.

`tables/*.json` are made by `benchmarks/tables/support_tables.py`. `facts` are what the rooms ask of a target;
`ops` says whether the parser has an importer (`since` from which version on, `plugin` the one that the importer makes);
`constructs` are operators used in a way that a target refuses, or takes and computes wrongly: `when` lists conditions
that all have to hold, see `trtconv.core.targets.conditions`. `rewrite` refuses and `check --target` reports by the same
entries.
"""

from trtconv.core.targets.target import KNOWN_TARGETS, Target, parse_target

__all__ = ["KNOWN_TARGETS", "Target", "parse_target"]
