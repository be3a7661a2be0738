"""All groups of the zoo, and the factory by which `trtconv export` gets a case's module."""

from __future__ import annotations

from importlib import import_module

from torch import nn

from tests.zoo.case import Case

GROUPS = (
    "norms", "pooling", "resize", "skips", "grids", "indexing", "attention", "shapes", "arithmetic", "recurrent",
    "mixed", "inputs", "statistics", "signals", "layers", "control", "vision", "transformers", "rewritten",
    "unseen", "detections",
)  # fmt: skip


def all_cases() -> dict[str, Case]:
    """Every case as `group/name`, in order. Raises ValueError when a name is given twice."""
    rows: dict[str, Case] = {}
    for group in GROUPS:
        for case in import_module(f"tests.zoo.{group}").CASES:
            key = f"{group}/{case.name}"
            if key in rows:
                raise ValueError(f"two zoo cases are called {key}")
            rows[key] = case
    return rows


def make(case: str) -> nn.Module:
    """The factory: `tests.zoo.registry:make --arg case=norms/l2norm_1e-10`."""
    group = case.split("/")[0]
    return next(c for c in import_module(f"tests.zoo.{group}").CASES if f"{group}/{c.name}" == case).build()
