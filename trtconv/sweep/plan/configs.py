"""A model's trtconv.toml as plain data, as far as a sweep looks into it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtconv.core.config import toml_reader


def read_config(path: Path) -> dict[str, Any]:
    """The tables of a config; of one that cannot be read its text, for the export will say what is wrong with it."""
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        data: dict[str, Any] = toml_reader().loads(text)
    except ValueError:
        return {"broken": text}
    return data
