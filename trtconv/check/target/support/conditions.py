"""The conditions of a construct, asked of one node.

attribute  with `default`, and one of `in`, `not_in`, `matches` (a regular expression), `not_all` (a value that all
           elements should have)
input      with `is`: given, computed (no constant), fed (an input of the model), fractional (a constant with parts of
           a whole), nonzero (a constant that is not all zero), at least (a constant with an element from `value` up)
dtype_of   with `in`: the element type of an input
any_dtype_in  one of these is the element type of some input or output
rank_of    with `over`, `is` or `is_not`: the rank of an input
outputs    the node's output with that number is used
opset_from the graph's opset is that or later
branches   `ranks differ`: the two branches of an If return different ranks

What the graph does not say (an unknown rank or type) makes a condition false: nothing is refused on a guess.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from trtconv.check.target.support.node_facts import GraphFacts, NodeFacts


def holds(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    """Whether one condition holds. Raises KeyError for a condition that does not exist (a test reads all tables)."""
    kind = next(k for k in condition if k in _KINDS)
    return bool(_KINDS[kind](condition, node, graph))


def _attribute(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    value = node.attributes.get(condition["attribute"], condition["default"])
    if "in" in condition:
        return value in condition["in"]
    if "not_in" in condition:
        return value not in condition["not_in"]
    if "matches" in condition:
        return re.search(condition["matches"], str(value).replace(" ", "")) is not None
    return any(v != condition["not_all"] for v in value)


def _input(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    name = node.input(condition["input"])
    if not name:
        return False
    kind = condition["is"]
    if kind == "given":
        return True
    if kind == "computed":
        return not graph.is_constant(name)
    if kind == "fed":
        return name in graph.fed
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


def _dtype(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    return graph.dtype(node.input(condition["dtype_of"])) in condition["in"]


def _any_dtype(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    return any(graph.dtype(name) in condition["any_dtype_in"] for name in (*node.inputs, *node.outputs) if name)


def _rank(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    rank = graph.rank(node.input(condition["rank_of"]))
    if rank is None:
        return False
    if "is" in condition:
        return bool(rank == condition["is"])
    return bool(rank != condition["is_not"]) if "is_not" in condition else bool(rank > condition["over"])


def _outputs(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    index = condition["outputs"] - 1
    return any(name and graph.is_used(name) for name in node.outputs[index:])


def _opset(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    return graph.opset >= int(condition["opset_from"])


def _branches(condition: Mapping[str, Any], node: NodeFacts, graph: GraphFacts) -> bool:
    return any(len({r for r in ranks if r is not None}) > 1 for ranks in node.branch_ranks)


_KINDS = {
    "attribute": _attribute, "input": _input, "dtype_of": _dtype, "any_dtype_in": _any_dtype, "rank_of": _rank,
    "outputs": _outputs, "opset_from": _opset, "branches": _branches,
}  # fmt: skip
