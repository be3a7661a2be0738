"""Budgets and baselines: what makes `trtconv check` fail besides wrong numbers."""
