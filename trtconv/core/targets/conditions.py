"""The conditions of a construct, asked of one node.

attribute  with `default`, and one of `in`, `not_in`, `matches` (a regular expression), `not_all` (a value that all
           elements should have)
input      with `is`: given, computed (no constant), fed (an input of the model), fractional (a constant with parts of
           a whole), nonzero (a constant that is not all zero), at least (a constant with an element from `value` up),
           empty or unknown (left out, a constant without elements, or no small constant)
dtype_of   with `in`: the element type of an input
any_dtype_in  one of these is the element type of some input or output
rank_of    with `over`, `is` or `is_not`: the rank of an input
outputs    the node's output with that number is used
opset_from the graph's opset is that or later
not_op     the operator is none of these
any_input_over_bits  an input is a constant of 64-bit integers that this number of bits does not hold
branches   `ranks differ`: the two branches of an If return different ranks

What the graph does not say (an unknown rank or type) makes a condition false: nothing is refused on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol


class NodeView(Protocol):
    """A node as the conditions see it."""

    @property
    def op(self) -> str:
        """The op type."""

    @property
    def inputs(self) -> Sequence[str]:
        """Names of the inputs, empty where one is left out."""

    @property
    def outputs(self) -> Sequence[str]:
        """Names of the outputs."""

    @property
    def branch_ranks(self) -> Sequence[Sequence[int | None]]:
        """Of an If, for each output its rank in each branch."""

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute as a Python value."""

    def input(self, index: int) -> str:
        """The name of an input, empty when it is omitted."""


class GraphView(Protocol):
    """A graph as the conditions see it; element types by trtconv's names, empty where not known."""

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain."""

    def is_constant(self, name: str) -> bool:
        """True for an initializer or the output of a Constant node."""

    def is_fed(self, name: str) -> bool:
        """True for an input of the model."""

    def is_used(self, name: str) -> bool:
        """True when a node reads the value or the graph returns it."""

    def small_constant(self, name: str) -> list[float] | None:
        """The elements of a constant of at most 64 elements, or None."""

    def exceeds_bits(self, name: str, bits: int) -> bool:
        """True for a constant of 64-bit integers with an element that does not fit a signed integer of `bits`."""

    def dtype(self, name: str) -> str:
        """The element type of a value."""

    def rank(self, name: str) -> int | None:
        """The rank of a value, None when not known."""


def holds(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    """Whether a condition holds. Raises KeyError for an unknown condition (a test reads all tables)."""
    kind = next(k for k in condition if k in _KINDS)
    return bool(_KINDS[kind](condition, node, graph))


def _attribute(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    value = node.attribute(condition["attribute"], condition["default"])
    if "in" in condition:
        return value in condition["in"]
    if "not_in" in condition:
        return value not in condition["not_in"]
    if "matches" in condition:
        return re.search(condition["matches"], str(value).replace(" ", "")) is not None
    return any(v != condition["not_all"] for v in value)


def _input(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    name = node.input(condition["input"])
    kind = condition["is"]
    if kind == "empty or unknown":
        return not name or not graph.small_constant(name)
    if not name:
        return False
    if kind == "given":
        return True
    if kind == "computed":
        return not graph.is_constant(name)
    if kind == "fed":
        return graph.is_fed(name)
    values = graph.small_constant(name)
    if values is None:
        return False
    if kind == "nonzero":
        return any(v != 0.0 for v in values)
    if kind == "fractional":
        return any(float(v) != round(float(v)) for v in values)
    if kind == "at least":
        return any(v >= condition["value"] for v in values)
    raise KeyError(kind)


def _dtype(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return graph.dtype(node.input(condition["dtype_of"])) in condition["in"]


def _any_dtype(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return any(graph.dtype(name) in condition["any_dtype_in"] for name in (*node.inputs, *node.outputs) if name)


def _rank(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    rank = graph.rank(node.input(condition["rank_of"]))
    if rank is None:
        return False
    if "is" in condition:
        return bool(rank == condition["is"])
    return bool(rank != condition["is_not"]) if "is_not" in condition else bool(rank > condition["over"])


def _outputs(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    index = condition["outputs"] - 1
    return any(name and graph.is_used(name) for name in node.outputs[index:])


def _opset(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return graph.opset >= int(condition["opset_from"])


def _branches(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return any(len({r for r in ranks if r is not None}) > 1 for ranks in node.branch_ranks)


def _not_op(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return node.op not in condition["not_op"]


def _bits(condition: Mapping[str, Any], node: NodeView, graph: GraphView) -> bool:
    return any(graph.exceeds_bits(name, condition["any_input_over_bits"]) for name in node.inputs if name)


_KINDS = {
    "not_op": _not_op,
    "any_input_over_bits": _bits,
    "attribute": _attribute,
    "input": _input,
    "dtype_of": _dtype,
    "any_dtype_in": _any_dtype,
    "rank_of": _rank,
    "outputs": _outputs,
    "opset_from": _opset,
    "branches": _branches,
}
