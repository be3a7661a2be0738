"""Nodes all of whose inputs are constants, computed once; an epsilon or any other small number is never dropped."""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.concrete import run_node
from trtconv.rewrite.graph.fragment import SHAPE_ARITHMETIC
from trtconv.rewrite.graph.index import Array, Graph, Node

MAX_ELEMENTS = 4096
OPS = tuple(sorted(SHAPE_ARITHMETIC - {"Constant", "Identity"}))


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a node of shape arithmetic with constant inputs and a result of at most 4,096 elements."""
    if not node.inputs or len(node.outputs) != 1:
        return NOT_THIS
    values = [graph.constant(i, MAX_ELEMENTS) if i else None for i in node.inputs]
    if any(v is None and i for v, i in zip(values, node.inputs, strict=True)):
        return NOT_THIS
    result = _computed(graph, node, values)
    if result is None:
        return Skip("its constant result could not be computed")
    if result.size > MAX_ELEMENTS:
        return Skip(f"the result has {result.size} elements, more than {MAX_ELEMENTS}")
    return Found((node,), lambda g: g.const(result, "folded"))


def _computed(graph: Graph, node: Node, values: list[Array | None]) -> Array | None:
    try:
        with np.errstate(all="ignore"):
            return np.asarray(run_node(node.proto, values, graph.opset)[0])
    except Exception:  # noqa: BLE001 - whatever the reference op raises, the node stays
        return None


RULE = Rule(
    name="fold-constants",
    why="Arithmetic on constants is done once here; some inputs of TensorRT have to be constants.",
    ops=OPS,
    find=find,
    before="Reshape(x, Concat(Constant, Constant))",
    after="Reshape(x, constant)",
    after_rules=("drop-identity", "merge-casts", "merge-transposes"),
)
