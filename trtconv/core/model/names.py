"""Names of new values and nodes that nothing in a model has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator


def numbered_names(stem: str) -> Iterator[str]:
    """The stem, and the stem with a number behind it."""
    yield stem
    yield from (f"{stem}/{turn}" for turn in itertools.count(1))


def free_name(stem: str, names: set[str]) -> str:
    """The first of the numbered names that is not among `names`, to which it is added."""
    name = next(n for n in numbered_names(stem) if n not in names)
    names.add(name)
    return name
