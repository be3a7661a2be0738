"""What `--nms` makes of a model before the rules run, and its proof."""

from __future__ import annotations

import onnx

from trtconv.core.errors import AccuracyError
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import Target
from trtconv.core.targets.table import load_table
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.whole import InitialGraph
from trtconv.rewrite.fixed_rows.births import BIRTHS
from trtconv.rewrite.fixed_rows.clusters import prove_suppressions
from trtconv.rewrite.fixed_rows.empty_guards import without_empty_guards
from trtconv.rewrite.fixed_rows.fix import FixedModel, fix_rows
from trtconv.rewrite.fixed_rows.native_limits import with_native_limits
from trtconv.rewrite.graph.facts import index_model


def settle_rows(
    model: onnx.ModelProto, request: RewriteRequest, progress: Progress
) -> tuple[onnx.ModelProto, list[str]]:
    """The model to rewrite, and notes: at fixed sizes where `--nms` asks for them.

    Raises UnsupportedError where fixed sizes do not follow what the graph does, AccuracyError where they differ.
    """
    if not chosen(model, request):
        native = any(n.op_type == "NonMaxSuppression" for n in model.graph.node)
        return with_native_limits(model, request.target) if native else (model, [])
    progress.phase("fixed rows")
    fixed = fix_rows(model, request.target, request.max_detections)
    notes = [f"--nms topk: {fixed.record.describe()}"]
    if request.proof:
        notes += prove(model, fixed, request.target)
    return fixed.model, notes


def chosen(model: onnx.ModelProto, request: RewriteRequest) -> bool:
    """True where the model has something to fix and the request or the target wants it."""
    operators = {n.op_type for n in walk_nodes(model.graph.node) if n.domain in ("", "ai.onnx")} & set(BIRTHS)
    if request.nms == "auto":
        # TensorRT's own layer gives the rows in an order of its own, and does not run without boxes.
        return any(op == "NonMaxSuppression" or not _supported(op, request.target) for op in operators)
    return bool(operators) and request.nms == "topk"


def _supported(op: str, target: Target) -> bool:
    support = load_table(target).ops.get(op)
    return support is not None and support.supported


def prove(before: onnx.ModelProto, fixed: FixedModel, target: Target) -> list[str]:
    """The fixed graph gives the first rows of what the graph gives, in its order, and counts them right."""
    # A suppression in the part of an If stands in the graph then.
    decided, _ = without_empty_guards(before, BIRTHS)
    cases = prove_suppressions(index_model(decided, target), fixed.model, fixed.suppressions)
    space, specs = model_space(before)
    with InitialGraph(before, space, specs, form=fixed.record) as original:
        proof = original.compare(fixed.model)
    if proof.passed is False:
        raise AccuracyError(
            f"at fixed sizes the graph differs: {proof.note}", hint="keep the sizes as they are with --nms native"
        )
    if proof.passed is None:
        return [f"the fixed sizes were not compared here: {proof.note}"]
    beside = f", its suppression by itself in {cases} cases" if cases else ""
    return [f"the fixed sizes equal the graph at {len(proof.points)} points{beside}"]
