"""Bringing a model to the newest opset that its target reads without dropping what nodes say (8.6: opset 17)."""

from __future__ import annotations

import onnx

from trtconv.core.errors import UnsupportedError
from trtconv.core.ledger.records import LedgerEntry
from trtconv.core.model.drawing import DRAWING
from trtconv.core.model.opset import opset_of
from trtconv.core.progress import Progress
from trtconv.proof.comparison import first_failure
from trtconv.rewrite.engine.points import Points
from trtconv.rewrite.engine.proof import Prover
from trtconv.rewrite.engine.rounds import NOT_PROVED, RewriteRecord, RewriteSetting, describe, node_text
from trtconv.rewrite.graph.facts import index_model, inferred
from trtconv.rewrite.graph.fragment import cut
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.replacement import build_replacement
from trtconv.rewrite.graph.splice import splice, write_back
from trtconv.rewrite.lowering.opset import Obstacle, Restated, restate

NAME = "opset"
OLDEST_IR = 8


def lower_opset(model: onnx.ModelProto, setting: RewriteSetting, progress: Progress, record: RewriteRecord) -> None:
    """Restate every node in the target's opset, in place. Raises UnsupportedError naming the nodes that have no form.

    Only TensorRT 8.6 needs this: its parser takes later opsets without complaint and drops what is new in them.
    """
    opset, newest = opset_of(model), setting.target.max_opset
    if setting.target.generation != 8 or opset <= newest:
        return
    progress.phase(f"opset {opset} to {newest}")
    types = inferred(model)
    graph = index_model(model, setting.target, types)
    restatements = [(g, n, restate(g, n, newest)) for g in graph.scopes() for n in list(g.nodes.values())]
    _refuse([(n, r) for _, n, r in restatements if isinstance(r, Obstacle)], setting, newest)
    prover = Prover(Points.of(types, setting.space, setting.specs)) if setting.proof else None
    for scope, node, restated in restatements:
        if isinstance(restated, Restated):
            _replace(scope, node, restated, prover, record, newest)
    write_back(graph)
    for entry in model.opset_import:
        if entry.domain in ("", "ai.onnx"):
            entry.version = newest
    model.ir_version = min(model.ir_version, OLDEST_IR)


def _refuse(obstacles: list[tuple[Node, Obstacle]], setting: RewriteSetting, newest: int) -> None:
    if obstacles:
        node, first = obstacles[0]
        raise UnsupportedError(
            f"{describe(node)} has no form in opset {newest}, the newest that {setting.target} reads: {first.reason}",
            hint="choose a newer target, or change the module there",
            details=[f"{describe(n)}: {o.reason}" for n, o in obstacles[1:]],
            where=node.origin.source or None,
        )


def _replace(
    graph: Graph, node: Node, restated: Restated, prover: Prover | None, record: RewriteRecord, newest: int
) -> None:
    replacement = build_replacement(graph, f"{node.output}/{NAME}", restated.build, newest)
    proof = NOT_PROVED
    if prover is not None:
        proof = prover(cut(graph, [node], replacement), None, {}, node.name)
        # A node that is written alike is only refused for other values: the two evaluators differ in what they run.
        differs = first_failure(proof.comparisons) if restated.unchanged else proof.passed is False
        if differs and node.op not in DRAWING:
            raise UnsupportedError(
                f"{describe(node)} computes something else in opset {newest}: {proof.note}",
                hint="choose a newer target, or change the module there",
                where=node.origin.source or None,
            )
    if restated.unchanged:
        return
    before = (node_text(node.proto),)
    origin, name = node.origin, node.name
    new = splice(graph, [node], replacement, NAME)
    why = f"The newest opset that the target reads without dropping what nodes say is {newest}."
    record.entries.append(
        LedgerEntry(NAME, why, name, origin, graph.scope, before, tuple(node_text(n.proto) for n in new), proof)
    )
