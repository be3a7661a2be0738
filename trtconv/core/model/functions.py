"""A model's local functions: none may reach itself, written out they stay a finite graph, and mean the same there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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


def require_fitting_calls(model: onnx.ModelProto, error: Callable[[str], Exception]) -> None:
    """Raise `error(what)` for a call with more inputs or outputs than its local function has."""
    functions = {(f.domain, f.name, f.overload): f for f in model.functions}
    for nodes in (model.graph.node, *(f.node for f in model.functions)) if functions else ():
        for node in walk_nodes(nodes):
            function = functions.get(_key(node))
            if function is None:
                continue
            for what, inside in (("input", function.input), ("output", function.output)):
                count = len(getattr(node, what))
                if count > len(inside):
                    raise error(
                        f"node '{node.name}' calls the local function '{function.name}' with {count} {what}s, and it "
                        f"has {len(inside)}"
                    )


def require_one_meaning(model: onnx.ModelProto, error: Callable[[str], Exception]) -> None:
    """Raise `error(what)` for an operator of a function that is another one in the opset of the model.

    A function may import other versions than its model. ONNX Runtime reads its nodes as of the model's all the same:
    the Softmax of opset 11 then normalises over other axes, without a word.
    """
    outer, local = imported_opsets(model), {(opset_domain(f.domain), f.name) for f in model.functions}
    for function in model.functions:
        inner = imported_opsets(function)
        for domain, name in sorted(changed_operators(function, outer) - local):
            raise error(
                f"its local function '{function.name}' is written in opset {inner[domain]} of '{domain or 'ai.onnx'}' "
                f"and the model in {outer[domain]}, where {name} is another operator"
            )


def changed_operators(function: onnx.FunctionProto, opsets: Mapping[str, int]) -> set[tuple[str, str]]:
    """Domain and name of each operator of a function that is another one in these versions of the domains."""
    inner = imported_opsets(function)
    others = {d: opsets[d] for d, version in inner.items() if opsets.get(d, version) != version}
    used = {(opset_domain(n.domain), n.op_type) for n in walk_nodes(function.node)} if others else set()
    return {(d, n) for d, n in used if d in others and _definition(n, inner[d], d) != _definition(n, others[d], d)}


def imported_opsets(proto: onnx.ModelProto | onnx.FunctionProto) -> dict[str, int]:
    """The version by domain that a model or a function imports; ONNX's own domain is ''."""
    return {opset_domain(o.domain): int(o.version) for o in proto.opset_import}


def opset_domain(domain: str) -> str:
    """The domain by one name: ONNX's own has two."""
    return "" if domain == "ai.onnx" else domain


def _definition(operator: str, version: int, domain: str) -> tuple[int, bool]:
    """What tells the definitions of an operator apart: the version that brought it, and whether ONNX knows it."""
    import onnx

    try:
        return onnx.defs.get_schema(operator, version, domain).since_version, True
    except onnx.defs.SchemaError:
        return version, False


def _key(node: onnx.NodeProto) -> Key:
    return node.domain, node.op_type, node.overload
