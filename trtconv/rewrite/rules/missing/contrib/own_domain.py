"""Operators that ONNX Runtime had in its own domain before ONNX had them."""

from __future__ import annotations

from functools import partial

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.contrib_types import DOMAIN
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Operator -> the opset of ONNX that has the same one.
SINCE = {"Trilu": 14, "GatherND": 11, "Range": 11}


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match where the graph's opset has the operator."""
    if graph.opset < SINCE[node.op]:
        return Skip(f"{node.op} came with opset {SINCE[node.op]}", opset=SINCE[node.op])
    return Found((node,), partial(_build, node=node))


def _build(g: Replacement, node: Node) -> Value:
    return g.op(node.op, *node.inputs, **node.attributes())


RULE = Rule(
    name="own-domain",
    why="Operators that ONNX Runtime had before ONNX stand in a domain that TensorRT does not read.",
    ops=tuple(f"{DOMAIN}::{name}" for name in SINCE),
    find=find,
    before="com.microsoft.Trilu(x, k)",
    after="Trilu(x, k)",
)
