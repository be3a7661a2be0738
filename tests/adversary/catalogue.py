"""All attacks."""

from __future__ import annotations

import importlib
from pathlib import Path

from tests.adversary.attack import MODULES, GraphAttack, ModuleAttack
from tests.adversary.graph_files import read_graphs

FOLDER = Path(__file__).with_name("modules")


def load_modules() -> dict[str, ModuleAttack]:
    """Importing their files registers them."""
    for path in sorted(FOLDER.rglob("*.py")):
        if path.stem != "__init__":
            importlib.import_module(
                ".".join(("tests.adversary.modules", *path.relative_to(FOLDER).with_suffix("").parts))
            )
    return MODULES


def load_graphs() -> dict[str, GraphAttack]:
    """By name; raises ValueError for a name that is given twice."""
    graphs = list(read_graphs())
    named = {g.name: g for g in graphs}
    if len(named) < len(graphs):
        raise ValueError("two graphs have one name")
    return named
