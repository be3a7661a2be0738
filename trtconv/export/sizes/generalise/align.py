"""Laying graphs of one module, traced at different sizes, over each other node by node."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import replace_nodes, values_read
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import origin_of
from trtconv.export.sizes.generalise.formulas import CannotFollowError

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# Elements; what is larger is a weight.
LARGEST_CONSTANT = 1 << 22


# onnx.AttributeProto's types of numbers, by the field that has them.
_NUMBERS = {1: "f", 2: "i", 6: "floats", 7: "ints"}


class StructureDiffersError(Exception):
    """The graphs are not the same but for numbers; `here` and `there` are the first nodes that differ, or None."""

    def __init__(self, here: Any, there: Any) -> None:
        super().__init__(
            f"the graphs differ in structure: {_describe_node(here)} at one size, {_describe_node(there)} at another"
        )
        self.here = here
        self.there = there


def _describe_node(node: Any) -> str:
    return "nothing" if node is None else f"{node.op_type} of {origin_of(node)}"


@dataclass(frozen=True)
class Moved:
    """A constant or an attribute that is not the same in all graphs.

    `node` is its index among the nodes (for an initializer, of its first user), `name` the value's name or the
    attribute's; `values` are in the order of the graphs.
    """

    node: int
    name: str
    is_attribute: bool
    values: tuple[Any, ...]


def describe_reader(graph: onnx.GraphProto, moved: Moved) -> str:
    """The node of the first graph that reads what moved, and its line."""
    return _describe_node(next((n for n in graph.node if moved.name in n.input), graph.node[moved.node]))


def align(graphs: Sequence[onnx.GraphProto]) -> tuple[Moved, ...]:
    """Everything that moved. Raises StructureDiffersError when operations or wiring differ."""
    base = graphs[0]
    for other in graphs[1:]:
        require_same_structure(base, other)
    return (*_moved_attributes(graphs), *_moved_constants(graphs))


def constants_of(base: onnx.GraphProto, other: onnx.GraphProto, names: Sequence[str]) -> dict[str, Array]:
    """What constants of `base` are in `other`.

    Raises StructureDiffersError where these differ in more, CannotFollowError where one is none there.
    """
    require_same_structure(base, other)
    tables, pairs = _constants(other), _same_values([base, other])[1]
    values = {name: tables.get(pairs.get(name, "")) for name in names}
    arrays = {name: constant_array(value[1]) for name, value in values.items() if value is not None}
    present = {name: array for name, array in arrays.items() if array is not None}
    if len(present) < len(values):
        raise CannotFollowError("a constant of one size is computed, or too large, at another")
    return present


def load_recording(path: Path) -> onnx.ModelProto:
    """A recorded file, to be laid over others of the module: each use of a Constant has one of its own."""
    model = load_model(path)
    _with_own_constants(model.graph)
    return model


def _with_own_constants(graph: onnx.GraphProto) -> None:
    """Give each use of a Constant a Constant of its own, in place; those that bodies or outputs read stay.

    The exporter shares equal ones, and where one stands first depends on what else was recorded at those sizes.
    """
    shared = {n.output[0]: n for n in graph.node if n.op_type == "Constant"}
    captured = {v for n in graph.node for v in set(values_read(n)) - set(n.input)}
    read_elsewhere = captured | {o.name for o in graph.output}
    shared = {name: node for name, node in shared.items() if name not in read_elsewhere}
    nodes: list[onnx.NodeProto] = []
    uses: Counter[str] = Counter()
    for node in graph.node:
        if node.output and node.output[0] in shared:
            continue
        for index, name in enumerate(node.input):
            if name in shared:
                own = type(node)()
                own.CopyFrom(shared[name])
                # The first use keeps the name.
                if uses[name]:
                    own.output[0] = node.input[index] = f"{name}/{uses[name]}"
                    own.name = f"{own.name or name}/{uses[name]}"
                uses[name] += 1
                nodes.append(own)
        nodes.append(node)
    replace_nodes(graph, nodes)


def require_same_structure(base: onnx.GraphProto, other: onnx.GraphProto) -> None:
    """Raise StructureDiffersError when operations or wiring differ."""
    names: dict[str, str] = {v.name: w.name for v, w in zip(base.input, other.input, strict=False)}
    for here, there in zip(base.node, other.node, strict=False):
        same = here.op_type == there.op_type and len(here.input) == len(there.input)
        same = same and len(here.output) == len(there.output)
        if not same or any(names.setdefault(a, b) != b for a, b in zip(here.input, there.input, strict=True)):
            raise StructureDiffersError(here, there)
        names.update(zip(here.output, there.output, strict=True))
    if len(base.node) != len(other.node):
        longer = base.node if len(base.node) > len(other.node) else other.node
        extra = longer[min(len(base.node), len(other.node))]
        raise StructureDiffersError(extra if longer is base.node else None, None if longer is base.node else extra)


def _moved_attributes(graphs: Sequence[onnx.GraphProto]) -> Iterator[Moved]:

    for index, nodes in enumerate(zip(*(g.node for g in graphs), strict=True)):
        if nodes[0].op_type == "Constant":
            continue
        for attribute in nodes[0].attribute:
            if attribute.type not in _NUMBERS:
                _require_alike(attribute.name, nodes)
                continue
            values = [next((_numbers(a) for a in n.attribute if a.name == attribute.name), None) for n in nodes]
            if any(v != values[0] for v in values):
                yield Moved(index, attribute.name, True, tuple(values))


def _require_alike(name: str, nodes: Sequence[onnx.NodeProto]) -> None:
    """Raise StructureDiffersError where a text, a tensor or a body is another one at another size."""
    texts = [a.SerializeToString(deterministic=True) for n in nodes for a in n.attribute if a.name == name]
    if len(set(texts)) > 1:
        raise StructureDiffersError(nodes[0], nodes[next(i for i, t in enumerate(texts) if t != texts[0])])


def _numbers(attribute: onnx.AttributeProto) -> tuple[float, ...]:
    value = getattr(attribute, _NUMBERS[attribute.type])
    return tuple(value) if attribute.type > 2 else (value,)


def _moved_constants(graphs: Sequence[onnx.GraphProto]) -> Iterator[Moved]:
    import numpy as np

    tables = [_constants(g) for g in graphs]
    pairs = _same_values(graphs)
    for name, (index, _) in tables[0].items():
        matches = [tables[i].get(pairs[i].get(name, "")) for i in range(len(graphs))]
        values = [array for f in matches if f is not None and (array := constant_array(f[1])) is not None]
        if len(values) != len(graphs):
            continue
        first = values[0]
        if any(v.shape != first.shape or not np.array_equal(v, first) for v in values[1:]):
            yield Moved(index, name, False, tuple(values))


def _constants(graph: onnx.GraphProto) -> dict[str, tuple[int, Any]]:
    users: dict[str, int] = {}
    for index, node in enumerate(graph.node):
        for name in node.input:
            users.setdefault(name, index)
    constants = {t.name: (users.get(t.name, 0), t) for t in graph.initializer}
    for index, node in enumerate(graph.node):
        if node.op_type == "Constant":
            constants.update((node.output[0], (index, a.t)) for a in node.attribute if a.name == "value")
    return constants


def _same_values(graphs: Sequence[onnx.GraphProto]) -> list[dict[str, str]]:
    """For each graph, its name of every value of the first graph."""
    tables = []
    for graph in graphs:
        names: dict[str, str] = {}
        for here, there in zip(graphs[0].node, graph.node, strict=True):
            names.update(zip(here.input, there.input, strict=True))
            names.update(zip(here.output, there.output, strict=True))
        tables.append(names)
    return tables


def constant_array(tensor: onnx.TensorProto) -> Array | None:
    """The numbers of a constant; None of one that is large or lies in another file, which is a weight."""
    import math

    from onnx import TensorProto, numpy_helper

    if tensor.data_location == TensorProto.EXTERNAL or math.prod(tensor.dims) > LARGEST_CONSTANT:
        return None
    array: Array = numpy_helper.to_array(tensor)
    return array
