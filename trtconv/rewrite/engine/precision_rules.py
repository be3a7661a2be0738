"""Rules that pay in one precision alone: they fire after all others, on the graph that is about to be typed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.core.ledger.records import Skipped
from trtconv.core.model.file import load_weights
from trtconv.core.precision import AUTO, FP32
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.rewrite.engine.plugin_choice import named_plugins, select_paying_rules, with_declined, with_plugin_rules
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

    One that makes plugin nodes is among them when the request has the plugin; the other rules of named plugins come
    with them. The whole graph is compared as well; where it differs, none of them stays.
    """
    import onnx

    record = RewriteRecord()
    # A rule for FP32 looks at the types itself: a graph that stays as it is may be in half.
    precision = FP32.name if request.precision == AUTO else request.precision
    rules = with_plugin_rules(rules, request)
    if not any(is_of_precision(r, request) and precision in r.precisions for r in rules):
        return graph.model, record
    # What they write may be what a plugin computes.
    named = named_plugins(request)
    rules = [r for r in rules if (precision in r.precisions if is_of_precision(r, request) else r.plugin in named)]
    load_weights(graph.model, graph.file.parent)
    model = onnx.ModelProto()
    model.CopyFrom(graph.model)
    space, specs = model_space(model)
    declined: dict[tuple[str, str], Skipped] = {}
    rules = select_paying_rules(rules, request, graph.model, space, specs, declined)
    apply_rules(model, rules, RewriteSetting(request.target, space, specs, request.proof), progress, record)
    record.skipped = list(with_declined(record.skipped, record.entries, declined))
    if not record.entries:
        return graph.model, record
    if request.proof:
        with InitialGraph(graph.model, space, specs) as before:
            whole = before.compare(model)
        if whole.passed is False:
            return graph.model, RewriteRecord(rejected=[taken_back(e, whole) for e in record.entries])
    return model, record
