"""Calls of a model's local functions: none may reach itself, and written out they must stay a finite graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import walk_nodes

if TYPE_CHECKING:
    import onnx

MAX_NODES = 2_000_000
MAX_CALL_DEPTH = 100
Key = tuple[str, str, str]


def require_finite_calls(model: onnx.ModelProto, error: Callable[[str], Exception]) -> None:
    """Raise `error(what)` for a function that calls itself, is defined twice, or whose calls write out too much."""
    bodies = {(f.domain, f.name, f.overload): f for f in model.functions}
    if len(bodies) < len(model.functions):
        raise error("a local function is defined twice")
    if not bodies:
        return
    calls = {key: [k for n in walk_nodes(f.node) if (k := _key(n)) in bodies] for key, f in bodies.items()}
    own = {key: sum(1 for _ in walk_nodes(f.node)) for key, f in bodies.items()}
    sizes: dict[Key, int] = {}
    depths: dict[Key, int] = {}
    for root in bodies:
        active: dict[Key, Iterator[Key]] = {root: iter(calls[root])} if root not in sizes else {}
        while active:
            key, rest = next(reversed(active.items()))
            inner = next(rest, None)
            if inner is None:
                active.popitem()
                sizes[key] = own[key] + sum(sizes[c] for c in calls[key])
                depths[key] = 1 + max((depths[c] for c in calls[key]), default=0)
            elif inner in active:
                raise error(f"the local function '{inner[1]}' calls itself")
            elif inner not in sizes:
                active[inner] = iter(calls[inner])
    if max(depths.values()) > MAX_CALL_DEPTH:
        raise error(f"local functions call each other over {MAX_CALL_DEPTH} deep")
    total = sum(sizes.get(_key(n), 1) for n in walk_nodes(model.graph.node))
    if total > MAX_NODES:
        raise error(f"written out, its local functions make {total} nodes, over {MAX_NODES}")


def _key(node: onnx.NodeProto) -> Key:
    return node.domain, node.op_type, node.overload
