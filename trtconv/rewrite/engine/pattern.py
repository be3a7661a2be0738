"""Rules from two functions: one builds the pattern as a graph-surgeon graph, the other what stands in its place.

The pattern is matched on the index, from its last node upwards: constants by value, operands of commutative operators
in either order, attributes by value, those that are not written by their defaults.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from itertools import permutations
from typing import Any

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx import helper

from trtconv.core.targets import Target
from trtconv.core.tolerance import Tolerance
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, every_target
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import OperatorGraph
from trtconv.rewrite.graph.replacement import export_node

COMMUTATIVE = frozenset({"Add", "Mul", "Max", "Min", "And", "Or", "Xor", "Equal", "Sum"})
SHOWN_OPSET = 17


class PatternGraph(OperatorGraph):
    """The graph in which a pattern is built: its inputs are variables that match any value."""

    def unique_name(self, stem: str) -> str:
        """A name that this graph does not have."""
        self.name_idx += 1
        return f"{stem}_{self.name_idx}"

    def value(self, name: str) -> gs.Tensor:
        """Raise TypeError: a pattern has no graph around it."""
        raise TypeError(f"'{name}' is not a tensor; a pattern is built from its inputs")


def pattern_rule(
    name: str,
    why: str,
    before: Callable[..., Any],
    after: Callable[..., Any],
    *,
    opset: int = 1,
    needed: Callable[[Target], bool] = every_target,
    tolerance: Tolerance | None = None,
) -> Rule:
    """A rule that puts `after(g, x, ..)` in the place of `before(g, x, ..)`, from `opset` on.

    Both take a graph-surgeon graph and tensors of the names that `before` gives them, and return one tensor.
    Raises ValueError for a pattern that is not one connected graph with one output.
    """
    root = _built(before, SHOWN_OPSET)

    def find(graph: Graph, node: Node) -> Found | Skip:
        for values, nodes in matches(graph, node, _built(before, graph.opset)):
            if graph.opset < opset:
                return Skip(f"what it is replaced by came with opset {opset}", opset)
            matched = tuple(sorted({id(n): n for n in nodes}.values(), key=lambda n: n.order))
            return Found(matched, lambda g, v=values: after(g, *(g.value(v[p]) for p in _inputs(before))))  # type: ignore[misc]
        return NOT_THIS

    find.__doc__, find.__module__ = before.__doc__, before.__module__
    shown = PatternGraph(opset=max(opset, SHOWN_OPSET))
    result = _one(after(shown, *(gs.Variable(p) for p in _inputs(before))))
    return Rule(
        name,
        why,
        (root.inputs[0].op,),
        find,
        needed,
        before=describe(root),
        after=describe(result),
        tolerance=tolerance,
    )


@lru_cache(maxsize=256)
def _built(before: Callable[..., Any], opset: int) -> gs.Tensor:
    """The output of the pattern as it is written in an opset."""
    tensor = _one(before(PatternGraph(opset=opset), *(gs.Variable(p) for p in _inputs(before))))
    if not tensor.inputs:
        raise ValueError("a pattern has at least one node, and returns the output of the last one")
    return tensor


def _inputs(before: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(before).parameters)[1:]


def _one(result: Any) -> gs.Tensor:
    """The tensor that a function returned, by itself or as `layer` returns it."""
    tensors = [result] if isinstance(result, gs.Tensor) else list(result)
    if len(tensors) != 1:
        raise ValueError(f"a pattern has one output, got {len(tensors)}")
    return tensors[0]


def describe(tensor: gs.Tensor) -> str:
    """A tensor as an expression: `Div(Mul(x, Clip(Add(x, 3), 0, 6)), 6)`."""
    if isinstance(tensor, gs.Constant):
        return f"{tensor.values.reshape(-1)[0]:g}" if tensor.values.size == 1 else str(tensor.values.tolist())
    if not tensor.inputs:
        return str(tensor.name)
    node = tensor.inputs[0]
    attributes = [f"{k}={v}" for k, v in node.attrs.items()]
    return f"{node.op}({', '.join([*(describe(i) for i in node.inputs), *attributes])})"


Match = tuple[Mapping[str, str], tuple[Node, ...]]


def matches(graph: Graph, node: Node, root: gs.Tensor) -> Iterator[Match]:
    """Each way in which a node is the last one of the pattern: values by the pattern's inputs, and matched nodes."""
    return _node(graph, node, root.inputs[0], {}, ())


def _node(
    graph: Graph, node: Node, pattern_node: gs.Node, values: Mapping[str, str], nodes: tuple[Node, ...]
) -> Iterator[Match]:
    domain = "" if pattern_node.domain in (None, "ai.onnx") else pattern_node.domain
    if (node.op, node.domain) != (pattern_node.op, domain) or not _same_attributes(graph, node, pattern_node):
        return
    count = max(len(node.inputs), len(pattern_node.inputs))
    pattern_inputs = [*pattern_node.inputs, *([gs.Variable.empty()] * (count - len(pattern_node.inputs)))]
    names = [node.input(i) for i in range(count)]
    orders = permutations(names) if node.op in COMMUTATIVE and count <= 3 else (names,)
    for order in dict.fromkeys(tuple(o) for o in orders):
        yield from _operands(graph, list(zip(order, pattern_inputs, strict=True)), values, (node, *nodes))


def _operands(
    graph: Graph, pairs: list[tuple[str, gs.Tensor]], values: Mapping[str, str], nodes: tuple[Node, ...]
) -> Iterator[Match]:
    if not pairs:
        yield values, nodes
        return
    (name, tensor), rest = pairs[0], pairs[1:]
    for bound, passed in _value(graph, name, tensor, values, nodes):
        yield from _operands(graph, rest, bound, passed)


def _value(
    graph: Graph, name: str, tensor: gs.Tensor, values: Mapping[str, str], nodes: tuple[Node, ...]
) -> Iterator[Match]:
    """A value against a tensor of the pattern: a constant, an input, or the output of a node."""
    if tensor.is_empty() or not name:
        if tensor.is_empty() and not name:
            yield values, nodes
    elif isinstance(tensor, gs.Constant):
        if _same_constant(graph, name, tensor.values):
            yield values, nodes
    elif not tensor.inputs:
        if values.get(tensor.name, name) == name:
            yield {**values, tensor.name: name}, nodes
    else:
        maker, pattern_node = graph.maker(name), tensor.inputs[0]
        if maker is not None and maker.outputs.index(name) == [o.name for o in pattern_node.outputs].index(tensor.name):
            yield from _node(graph, maker, pattern_node, values, nodes)


def _same_constant(graph: Graph, name: str, expected: Any) -> bool:
    """Equal values in the element type of the graph; one number is equal to itself in any number of dims of 1."""
    array = graph.constant(name)
    if (
        array is None
        or (array.size == 1) != (expected.size == 1)
        or (array.size != 1 and array.shape != expected.shape)
    ):
        return False
    return bool(np.array_equal(array.reshape(-1), expected.astype(array.dtype).reshape(-1)))


def _same_attributes(graph: Graph, node: Node, pattern_node: gs.Node) -> bool:
    own = {a.name: helper.get_attribute_value(a) for a in node.proto.attribute}
    other = {a.name: helper.get_attribute_value(a) for a in export_node(pattern_node).attribute}
    if own.keys() != other.keys():
        defaults = _defaults(node.op, graph.opset, node.domain)
        own, other = {**defaults, **own}, {**defaults, **other}
    return own == other


@lru_cache(maxsize=256)
def _defaults(op_type: str, opset: int, domain: str) -> Mapping[str, Any]:
    try:
        schema = onnx.defs.get_schema(op_type, opset, domain)
    except onnx.defs.SchemaError:
        return {}
    values = {n: a.default_value for n, a in schema.attributes.items() if a.default_value.name}
    return {n: helper.get_attribute_value(v) for n, v in values.items()}
