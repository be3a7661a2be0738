"""Names of new values and nodes that nothing in a model has."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, walk_nodes

if TYPE_CHECKING:
    import onnx


def numbered_names(stem: str) -> Iterator[str]:
    """The stem, and the stem with a number behind it."""
    yield stem
    yield from (f"{stem}/{turn}" for turn in itertools.count(1))


def free_name(stem: str, names: set[str]) -> str:
    """The first of the numbered names that is not among `names`, to which it is added."""
    name = next(n for n in numbered_names(stem) if n not in names)
    names.add(name)
    return name


def names_in(graph: onnx.GraphProto) -> set[str]:
    """Every name of a value in a graph and its bodies."""
    names = {value.name for value in (*graph.input, *graph.output)}
    names.update(tensor.name for part in graphs_of(graph) for tensor in part.initializer)
    names.update(name for node in walk_nodes(graph.node) for name in (*node.input, *node.output))
    return names
