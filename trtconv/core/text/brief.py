"""A result as a person reads it at a prompt: a field a line, what is long by its number."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MOST_CHARACTERS = 100
MOST_ITEMS = 3
# A part that has more to say is looked at by itself.
MOST_OF_A_PART = 300


def brief_repr(result: Any) -> str:
    """The repr of a dataclass with many or long fields; empty fields are left out."""
    lines = [f"  {name}={text}" for name, text in _fields(result) if text]
    return "\n".join([f"{type(result).__name__}(", *lines, ")"])


def _fields(result: Any) -> list[tuple[str, str]]:
    return [(f.name, brief_text(getattr(result, f.name))) for f in dataclasses.fields(result) if f.repr]


def brief_text(value: Any) -> str:
    """A value in at most a line; empty for what is empty."""
    if value is None or (isinstance(value, (str, tuple, list, Mapping, frozenset)) and not value):
        return ""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, (tuple, list)) and len(value) > MOST_ITEMS:
        kinds = {type(item).__name__ for item in value}
        return f"{len(value)} x {kinds.pop()}" if len(kinds) == 1 else f"{len(value)} items"
    if isinstance(value, (tuple, list)):
        text = ", ".join(brief_text(item) for item in value)
        return text if len(text) <= MOST_CHARACTERS else f"{len(value)} x {type(value[0]).__name__}"
    if isinstance(value, Mapping):
        text = ", ".join(f"{key}: {brief_text(item)}" for key, item in value.items())
        return f"{{{text}}}" if len(text) <= MOST_CHARACTERS else f"{len(value)} entries: {', '.join(map(str, value))}"
    if isinstance(value, float):
        return f"{value:.4g}"
    if dataclasses.is_dataclass(value):
        text = str(value)
        return text if "\n" not in text and len(text) <= MOST_OF_A_PART else f"{type(value).__name__}(...)"
    text = str(value)
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]}..."
