"""The models of real.toml: small networks of public packages, and modules of the zoo.

Inputs of floats are from -3 to 3, as normalised images and features are: without a range trtconv also tries values of
1e4, at which most networks overflow in fp16, which is true and says little.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RANGE = "=-3:3"


def models() -> dict[str, dict[str, Any]]:
    """A table of [[model]] for each case of the zoo, `zoo/GROUP/NAME`, and each network, `PACKAGE/NAME`."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from networks.models import models as networks
    from tests.zoo.registry import all_cases

    tables = {f"zoo/{name}": zoo_table(name, case) for name, case in all_cases().items()} | networks()
    return {name: {**table, "inputs": [ranged(t) for t in table["inputs"]]} for name, table in tables.items()}


def zoo_table(name: str, case: Any) -> dict[str, Any]:
    """The table of a case."""
    return {
        "module": f"{ROOT / 'tests' / 'zoo' / 'registry.py'}:make",
        "options": ["--arg", f"case={name}"],
        "inputs": list(case.inputs),
        "dynamic": case.space,
        "variables": {"PYTHONPATH": str(ROOT)},
    }


def ranged(text: str) -> str:
    """An input with a range, where it is of floats and has none."""
    return text + RANGE if ":float32[" in text and text.endswith("]") else text
