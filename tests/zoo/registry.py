"""All groups of the zoo, and the factory by which `trtconv export` gets a case's module."""

from __future__ import annotations

from importlib import import_module

from torch import nn

from tests.zoo.case import Case

# Group -> the folder of `groups/` that its file lies in; in the order of the tables.
GROUPS = {
    "norms": "operators", "pooling": "operators", "resize": "operators", "skips": "models", "grids": "operators",
    "indexing": "operators", "attention": "operators", "shapes": "operators", "arithmetic": "operators",
    "recurrent": "operators", "mixed": "models", "inputs": "models", "statistics": "operators", "signals": "operators",
    "layers": "operators", "control": "models", "vision": "models", "transformers": "models", "rewritten": "operators",
    "unseen": "models", "detections": "models",
}  # fmt: skip


def cases_of(group: str) -> tuple[Case, ...]:
    """The cases of a group, by its name. Raises KeyError for an unknown one."""
    cases: tuple[Case, ...] = import_module(f"tests.zoo.groups.{GROUPS[group]}.{group}").CASES
    return cases


def all_cases() -> dict[str, Case]:
    """Every case as `group/name`, in order. Raises ValueError when a name is given twice."""
    rows: dict[str, Case] = {}
    for group in GROUPS:
        for case in cases_of(group):
            key = f"{group}/{case.name}"
            if key in rows:
                raise ValueError(f"two zoo cases are called {key}")
            rows[key] = case
    return rows


def make(case: str) -> nn.Module:
    """The factory: `tests.zoo.registry:make --arg case=norms/l2norm_1e-10`."""
    group = case.split("/")[0]
    return next(c for c in cases_of(group) if f"{group}/{c.name}" == case).build()
