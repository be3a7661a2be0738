"""Rules that pay in one precision alone: they fire after all others, on the graph that is about to be typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.file import load_weights
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.rewrite.engine.plugin_choice import named_plugins
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.result import RewrittenGraph
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, apply_rules, taken_back
from trtconv.rewrite.engine.rule import Rule
from trtconv.rewrite.engine.whole import InitialGraph

if TYPE_CHECKING:
    import onnx


def is_of_precision(rule: Rule, request: RewriteRequest) -> bool:
    """True for a rule that waits for its precision; one of `--also` fires with the others, in any."""
    return bool(rule.precisions) and rule.name not in request.also


def shape_for_precision(
    graph: RewrittenGraph, rules: Sequence[Rule], request: RewriteRequest, progress: Progress
) -> tuple[onnx.ModelProto, RewriteRecord]:
    """The graph with those of `rules` applied that waited for its precision, each proved in FP32, and what they did.

    Rules of the plugins that the request names come with them. The whole graph is compared as well; where it differs,
    none of them stays.
    """
    import onnx

    record = RewriteRecord()
    waiting = {r.name for r in rules if is_of_precision(r, request) and request.precision in r.precisions}
    if not waiting:
        return graph.model, record
    # What they write may be what a plugin computes.
    named = named_plugins(request)
    rules = [r for r in rules if r.name in waiting or r.plugin in named]
    load_weights(graph.model, graph.file.parent)
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    space, specs = model_space(model)
    apply_rules(model, rules, RewriteSetting(request.target, space, specs, request.proof), progress, record)
    if not record.entries:
        return graph.model, record
    if request.proof:
        with InitialGraph(graph.model, space, specs) as before:
            whole = before.compare(model)
        if whole.passed is False:
            return graph.model, RewriteRecord(rejected=[taken_back(e, whole) for e in record.entries])
    return model, record
