"""Many models x targets x precisions x GPU kinds: `trtconv sweep`. Importing this imports no ray."""

from trtconv.sweep.sweep import Plan, SweepRequest, SweepResult, plan_sweep, run_sweep

__all__ = ["Plan", "SweepRequest", "SweepResult", "plan_sweep", "run_sweep"]
