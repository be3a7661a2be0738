"""The one module that changes a graph: puts a replacement in, takes what is dead out, writes the lists back."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence

import onnx
from onnx import helper

from trtconv.core.model.drawing import DRAWING
from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY, SOURCE_KEY
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.replacement import Exported


def splice(graph: Graph, matched: Sequence[Node], replacement: Exported, rule: str) -> list[Node]:
    """Replace the outputs of the last matched node by those of `replacement`; return the new nodes, in order.

    A new node takes over the name of the output that it replaces, so that users, outputs of the graph and bodies
    that capture the value stay as they are. Matched nodes that nobody uses any more are removed, and so is what
    only they used.
    """
    root = matched[-1]
    pairs = [(old, new) for old, new in zip(root.outputs, replacement.outputs, strict=False) if old and old != new]
    new_values = {o for n in replacement.nodes for o in n.output}
    protos = list(replacement.nodes)
    renamed: dict[str, str] = {}
    for old, new in pairs:
        if new in new_values and new not in renamed:
            renamed[new] = old
        elif any(o == old for o in graph.outputs) or _captured(graph, old) or new in new_values:
            protos.append(
                helper.make_node(
                    "Identity", [new], [old], name=_free_name(graph, f"{root.output}/{rule}/Identity", protos)
                )
            )
        else:
            rewire(graph, old, new)
    _take_out_of_index(graph, root)
    graph.initializers.update({t.name: t for t in replacement.constants})
    graph.names.update(t.name for t in replacement.constants)
    for tensor in replacement.constants:
        graph.pool_constant(tensor)
    made_by = provenance(matched, rule)
    new_nodes = [_insert(graph, proto, root, renamed, made_by, i) for i, proto in enumerate(protos)]
    remove_dead(graph, [*matched[:-1], *(m for i in (*root.inputs, *root.implicit) if (m := graph.maker(i)))])
    return new_nodes


def _free_name(graph: Graph, stem: str, protos: Sequence[onnx.NodeProto]) -> str:
    """A node name that neither the graph nor the new nodes have."""
    used_names, name, count = {p.name for p in protos}, stem, 1
    while name in graph.names or name in used_names:
        name, count = f"{stem}_{count}", count + 1
    return name


def _insert(
    graph: Graph, proto: onnx.NodeProto, root: Node, renamed: dict[str, str], made_by: list[tuple[str, str]], i: int
) -> Node:
    proto.output[:] = [renamed.get(o, o) for o in proto.output]
    proto.input[:] = [renamed.get(o, o) for o in proto.input]
    for key, value in made_by:
        proto.metadata_props.add(key=key, value=value)
    node = Node(proto, root.order + (i + 1) * 2.0**-20)
    node.fresh = True
    graph.add(node)
    return node


def provenance(matched: Sequence[Node], rule: str) -> list[tuple[str, str]]:
    """The metadata of new nodes: module and source of the root, or of the last matched node that has one."""
    origin = next((n.origin for n in reversed(matched) if n.origin), matched[-1].origin)
    pairs = ((MODULE_KEY, origin.module), (SOURCE_KEY, origin.source), (RULE_KEY, rule))
    return [(k, v) for k, v in pairs if v]


def _captured(graph: Graph, name: str) -> bool:
    return any(name in n.implicit for n in graph.uses(name))


def rewire(graph: Graph, old: str, new: str) -> None:
    """Let every user of `old` in this scope use `new`; bodies that capture it are not changed."""
    for node in graph.uses(old):
        node.inputs = [new if i == old else i for i in node.inputs]
        node.proto.input[:] = node.inputs
        graph.users.setdefault(new, {})[id(node)] = node
    graph.users.pop(old, None)


def _take_out_of_index(graph: Graph, node: Node) -> None:
    del graph.nodes[id(node)]
    graph.with_bodies.pop(id(node), None)
    for key in node.keys:
        del graph.by_key[key][id(node)]
    for name in node.outputs:
        if graph.makers.get(name) is node:
            del graph.makers[name]
    for name in (*node.inputs, *node.implicit):
        graph.users.get(name, {}).pop(id(node), None)


def remove_dead(graph: Graph, start: Iterable[Node]) -> int:
    """Remove the nodes of `start` whose values nobody uses, then what only they used; return how many."""
    waiting, removed = list(start), 0
    while waiting:
        node = waiting.pop()
        if id(node) not in graph.nodes or node.op in DRAWING:
            continue
        if any(graph.users.get(o) or o in graph.outputs for o in node.outputs if o):
            continue
        _take_out_of_index(graph, node)
        removed += 1
        waiting += [m for i in (*node.inputs, *node.implicit) if (m := graph.maker(i))]
    return removed


def write_back(graph: Graph) -> None:
    """Bring the index back into the graph's own lists: nodes in a valid order, constants that are used."""
    for node in graph.with_bodies.values():
        for body in node.bodies:
            write_back(body)
    nodes = [n.proto for n in topological_order(graph)]
    used = {n for n, users in graph.users.items() if users} | set(graph.outputs)
    used_constants = [t for t in graph.initializers.values() if t.name in used or t.name in graph.inputs]
    alive = set(graph.makers) | set(graph.inputs)
    infos = [v for v in graph.proto.value_info if v.name in alive]
    if len(infos) != len(graph.proto.value_info):
        _replace(graph.proto.value_info, infos)
    if [t.name for t in used_constants] != [t.name for t in graph.proto.initializer]:
        _keep_initializers(graph.proto, used_constants)
    _replace(graph.proto.node, nodes)


def _replace(field: object, items: list[object]) -> None:
    holder = list(items)
    del field[:]  # type: ignore[attr-defined]
    field.extend(holder)  # type: ignore[attr-defined]


def _keep_initializers(proto: onnx.GraphProto, used_constants: list[onnx.TensorProto]) -> None:
    """Drop and append initializers one by one: copying the whole list would double the weights in memory."""
    names = {t.name for t in used_constants}
    present = {t.name for t in proto.initializer}
    for index in range(len(proto.initializer) - 1, -1, -1):
        if proto.initializer[index].name not in names:
            del proto.initializer[index]
    proto.initializer.extend([t for t in used_constants if t.name not in present])


def _is_ordered(graph: Graph, nodes: Sequence[Node]) -> bool:
    """True when each node already stands after what it uses: nearly always."""
    computed: set[str] = set()
    for node in nodes:
        for name in (*node.inputs, *node.implicit):
            if name not in computed and name in graph.makers:
                return False
        computed.update(node.outputs)
    return True


def topological_order(graph: Graph) -> list[Node]:
    """The nodes so that each stands after what it uses, as near to the old order as that allows."""
    nodes = sorted(graph.nodes.values(), key=lambda n: n.order)
    if _is_ordered(graph, nodes):
        return nodes
    waiting = {
        id(n): len({id(m) for i in (*n.inputs, *n.implicit) if (m := graph.makers.get(i)) is not None}) for n in nodes
    }
    rank = {id(n): r for r, n in enumerate(nodes)}
    ready = [rank[id(n)] for n in nodes if waiting[id(n)] == 0]
    heapq.heapify(ready)
    ordered: list[Node] = []
    while ready:
        node = nodes[heapq.heappop(ready)]
        ordered.append(node)
        following = {id(u): u for o in node.outputs if o for u in graph.uses(o)}
        for user in following.values():
            waiting[id(user)] -= 1
            if waiting[id(user)] == 0:
                heapq.heappush(ready, rank[id(user)])
    return ordered
