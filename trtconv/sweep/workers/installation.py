"""Which trtconv this is: the digest of its files, since a checkout changes without its version."""

from __future__ import annotations

import hashlib
from pathlib import Path

COMMANDS = "sweep/plan/commands.py"


def source_digest() -> str:
    """SHA-256 over the package's files that decide results, in hex; of the sweep itself only what jobs run."""
    root = Path(__file__).resolve().parents[2]
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in (".py", ".json")):
        name = path.relative_to(root).as_posix()
        if name == COMMANDS or not name.startswith(("sweep/", "cli/")):
            digest.update(f"{name}\0".encode() + path.read_bytes())
    return digest.hexdigest()
