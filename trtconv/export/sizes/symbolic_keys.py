"""A dictionary that takes symbolic sizes for keys."""

from __future__ import annotations

from typing import Any


class SymbolicKeys(dict[Any, Any]):
    """A dictionary whose keys may have symbolic sizes in them, which have no hash."""

    def __getitem__(self, key: Any) -> Any:
        return super().__getitem__(_hashable(key))

    def __setitem__(self, key: Any, value: Any) -> None:
        super().__setitem__(_hashable(key), value)

    def __contains__(self, key: Any) -> bool:
        return super().__contains__(_hashable(key))

    def get(self, key: Any, default: Any = None) -> Any:
        """As of a plain dictionary."""
        return super().get(_hashable(key), default)

    def setdefault(self, key: Any, default: Any = None) -> Any:
        """As of a plain dictionary."""
        return super().setdefault(_hashable(key), default)


def _hashable(key: Any) -> Any:
    """The key with the expression of each symbolic size in its place."""
    if isinstance(key, tuple):
        return tuple(_hashable(k) for k in key)
    node = getattr(key, "node", None)
    return ("size", str(node.expr)) if node is not None and hasattr(node, "expr") else key
