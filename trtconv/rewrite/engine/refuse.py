"""What a target accepts and computes wrongly: a graph that still holds such a node is not handed on."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.ledger.records import LedgerEntry, Skipped
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.drawing import describe_drawing, drawing_nodes
from trtconv.core.model.opset import opset_of
from trtconv.core.targets import Target
from trtconv.core.targets.table import load_table
from trtconv.core.text.listing import list_first
from trtconv.rewrite.engine.rounds import describe
from trtconv.rewrite.engine.table_view import IndexedGraph, IndexedNode
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Graph, Node

LAYOUT_HINT = (
    "let the rule recurrent-layout run (with --no-proof where this onnx cannot evaluate layout 1, as 1.17), "
    "or transpose around the layer"
)
FOREIGN_DOMAINS = ("ai.onnx.ml", "com.microsoft")
MOST_NAMED = 6
# Rules that write operators on bytes in floats.
ON_BYTES = ("quantized-operator", "quantized-product")
WITH_BODIES = ("If", "Loop", "Scan")
RECURRENT = ("LSTM", "GRU", "RNN")
# Rules that say what to do about nodes that the target does not take.
ADVISING = ("selection-count", "unique", "unique-values", "integer-power", "tree-ensemble", "recurrent-clip")


def advice(skipped: Sequence[Skipped]) -> list[str]:
    """A note for each node whose result has a size that depends on the data, where the target refuses that."""
    return [f"{s.node}: {s.reason}" for s in skipped if s.rule in ADVISING and s.reason]


def lacking(model: onnx.ModelProto, target: Target, skipped: Sequence[Skipped]) -> list[str]:
    """A note on operators of ONNX, ONNX-ML and ONNX Runtime that are left and that the target has not.

    A node of another domain, or with a name that ONNX has not, may be a plugin's.
    """
    operators = load_table(target).ops
    advised = {s.node for s in skipped if s.rule in ADVISING}
    counts: dict[str, int] = {}
    for node in walk_nodes(model.graph.node):
        support = operators.get(node.op_type)
        foreign = node.domain in FOREIGN_DOMAINS
        label = node.name or next(iter(node.output), "")
        if label not in advised and (
            foreign or (not node.domain and support is not None and not support.supported)
        ):
            name = f"{node.op_type} ({node.domain})" if foreign else node.op_type
            counts[name] = counts.get(name, 0) + 1
    if not counts:
        return []
    listed = list_first([f"{name} x{count}" if count > 1 else name for name, count in counts.items()], MOST_NAMED)
    return [
        f"{target} has no {listed}, and no rule writes it otherwise: build refuses the graph, unless a plugin library "
        "brings it; compute it before or behind the engine, or write a rule (trtconv help write-a-rule)"
    ]


def refuse_silently_wrong(model: onnx.ModelProto, target: Target, skipped: list[Skipped]) -> None:
    """Raise UnsupportedError for the first node that the target would take and compute wrongly."""
    if _may_be_misread(model.graph):
        _refuse_everywhere(index_model(model, target), target)
    if target.facts.int8_is_quantised:
        _refuse_int8_ends(model, target)
    training = next((n for n in drawing_nodes(model.graph) if n.op_type == "Dropout"), None)
    if training is not None:
        raise UnsupportedError(
            f"{describe_drawing(training)} drops values, and {target} takes it for an identity, silently",
            hint="export the network in evaluation mode",
        )
    _refuse_by_table(model, target, skipped)
    if target.facts.drops_newer_opsets and opset_of(model) > target.max_opset:
        raise UnsupportedError(
            f"the graph has opset {opset_of(model)}, {target} reads at most {target.max_opset}",
            hint=f"export the model with --opset {target.max_opset}, or choose a newer --target",
        )


def drawing_note(model: onnx.ModelProto) -> list[str]:
    """A note where the graph draws random numbers: two runs of it are not comparable."""
    shown = ", ".join(describe_drawing(n) for n in drawing_nodes(model.graph)[:2])
    text = f"the graph draws random numbers ({shown}), and an engine others: what depends on them was not compared"
    return [text] if shown else []


def tie_note(entries: Sequence[LedgerEntry]) -> list[str]:
    """A note where ONNX Runtime's operators on bytes were written in floats."""
    nodes = [e.node for e in entries if e.rule in ON_BYTES]
    return [
        f"a value half-way between two steps may be rounded to the other one at {list_first(nodes, MOST_NAMED)}: ONNX "
        "Runtime computes on whole numbers there, and engines on floats"
    ] if nodes else []  # fmt: skip


def _refuse_by_table(model: onnx.ModelProto, target: Target, skipped: list[Skipped]) -> None:
    """Raise for the first node that the target's table calls wrong; `trtconv check --target` reads the same entries."""
    table = load_table(target)
    if not any(c.effect == "wrong" for c in table.constructs):
        return
    for scope in index_model(model, target).scopes():
        view = IndexedGraph(scope)
        for node in list(scope.nodes.values()):
            construct = None if node.domain else table.silently_wrong(IndexedNode(node), view)
            if construct is not None:
                reasons = [s.reason for s in skipped if s.node == node.name and s.reason]
                raise UnsupportedError(
                    f"{describe(node)}: {target} {construct.problem}, silently",
                    hint="choose a newer target, or change the module there",
                    details=[f"no rewrite: {r}" for r in reasons],
                    where=node.origin.source or None,
                )


def _refuse_int8_ends(model: onnx.ModelProto, target: Target) -> None:
    """An int8 input or output of 8.6 is a quantised value: without Q/DQ nodes it wants a dynamic range."""
    if any(n.op_type in ("QuantizeLinear", "DequantizeLinear") for n in model.graph.node):
        return
    initializer_names = {t.name for t in model.graph.initializer}
    for end, values in (("input", model.graph.input), ("output", model.graph.output)):
        for value in values:
            if value.type.tensor_type.elem_type == onnx.TensorProto.INT8 and value.name not in initializer_names:
                raise UnsupportedError(
                    f"the {end} '{value.name}' is int8, which {target} has for quantised values alone",
                    hint=f"declare the {end} as int32, or as uint8 with 128 added, and cast inside the module",
                )


def _may_be_misread(graph: onnx.GraphProto) -> bool:
    """True when a node is left that every target could misread, in bodies too: a glance, to index no large graph."""
    for node in walk_nodes(graph.node):
        kind = node.op_type
        if kind == "Squeeze" and len(node.input) < 2 and not any(a.name == "axes" for a in node.attribute):
            return True
        if kind in RECURRENT and any(a.name == "layout" for a in node.attribute):
            return True
    return False


def _refuse_everywhere(graph: Graph, target: Target) -> None:
    """An engine keeps an axis that goes at some sizes only; the parsers do not read the layout of recurrent layers."""
    for scope in graph.scopes():
        for node in scope.find("Squeeze", *RECURRENT):
            problem, hint = _open_squeeze(scope, node) if node.op == "Squeeze" else _layout(node)
            if problem:
                raise UnsupportedError(
                    f"{describe(node)}: {problem} by {target}, silently",
                    hint=hint,
                    where=node.origin.source or None,
                )


def _open_squeeze(graph: Graph, node: Node) -> tuple[str, str]:
    moving = [d for d in graph.dims(node.inputs[0]) or () if _is_sometimes_one(graph, d)]
    if node.input(1) or node.attr("axes") or not moving:
        return "", ""
    low, high = graph.dim_range(moving[0]) or (1, 1)
    problem = f"the result has one axis less where {moving[0]} is 1 ({low} to {high}), an axis that is kept"
    return problem, f"squeeze(dim) names the axes that go; or let {moving[0]} begin at 2"


def _layout(node: Node) -> tuple[str, str]:
    if not node.attr("layout", 0):
        return "", ""
    return "layout 1 (the batch first) is not read", LAYOUT_HINT


def _is_sometimes_one(graph: Graph, dim: int | str | None) -> bool:
    bounds = graph.dim_range(dim)
    return bounds is not None and bounds[0] == 1 and bounds[1] > 1
