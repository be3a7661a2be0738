"""Nodes put together by the module that they come from: what is tried, kept and reported as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from trtconv.core.model.provenance import Origin

# More groups than this are joined by their outer modules: each costs one pass over the search part.
MOST = 64


@dataclass(frozen=True)
class NodeGroup:
    """Nodes of one module by name; `name` is the module's path, or where in the source a function is called."""

    name: str
    nodes: tuple[str, ...]


def group_by_module(nodes: Iterable[tuple[str, Origin]], most: int = MOST) -> tuple[NodeGroup, ...]:
    """Groups in order of the graph. Paths are cut to fewer parts until there are at most `most` groups."""
    listed = [(node, origin.module or origin.source or node) for node, origin in nodes]
    depth = max((label.count(".") + 1 for _, label in listed), default=1)
    while True:
        groups: dict[str, list[str]] = {}
        for node, label in listed:
            groups.setdefault(".".join(label.split(".")[:depth]), []).append(node)
        if len(groups) <= most or depth == 1:
            return tuple(NodeGroup(name, tuple(dict.fromkeys(members))) for name, members in groups.items())
        depth -= 1
