"""What each target takes, as tables: one entry per operator and per construct, each with its evidence.

`ops` says whether the parser has an importer (`since` from which version on, `plugin` the one that the importer
makes). `constructs` are operators used in a way that a target refuses, or takes and computes wrongly; `when` lists
conditions that all have to hold, see `trtconv.check.target.support.conditions`.
"""

from trtconv.check.target.support.table import Construct, OperatorSupport, SupportTable, load_table

__all__ = ["Construct", "OperatorSupport", "SupportTable", "load_table"]
