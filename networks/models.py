"""The networks as models of a sweep: `registry = "networks/models.py:models"` in sweep.toml.

`python -m networks --only-install FILTER` installs their packages before.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]


def models() -> dict[str, dict[str, Any]]:
    """A table of [[model]] for each network of the registry; imports none of their packages."""
    if str(ROOT) not in sys.path:
        sys.path.insert(0, str(ROOT))
    from networks.registry import all_networks
    from networks.run import variables_of

    return {
        name: {
            "module": f"{ROOT / 'networks' / 'registry.py'}:make",
            "options": ["--arg", f"network={name}"],
            "inputs": list(network.inputs),
            "dynamic": network.space,
            "variables": variables_of(name),
        }
        for name, network in all_networks().items()
    }
