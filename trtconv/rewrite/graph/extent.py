"""How large a value can become in the recorded shape space, for rules whose memory grows faster than their input."""

from __future__ import annotations

from trtconv.rewrite.graph.index import Graph


def largest(graph: Graph, name: str, first: int = 0, last: int | None = None) -> int | None:
    """The largest number of elements of the axes from `first` up to `last`; None when a dim has no recorded range."""
    dims = graph.dims(name)
    if dims is None:
        return None
    total = 1
    for dim in dims[first:last]:
        bounds = graph.dim_range(dim)
        if bounds is None:
            return None
        total *= bounds[1]
    return total
