"""Budgets and baselines: what `trtconv check` fails with besides wrong numbers."""
