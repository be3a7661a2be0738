"""The rewrite room: read a model, apply the rules, prove the whole, write model and ledger."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import trtconv
from trtconv.core.artifacts import beside, require_writable
from trtconv.core.errors import AccuracyError, InvalidRequestError, UnsupportedError, did_you_mean
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.output_paths import MODEL, require_distinct, require_replaceable
from trtconv.core.files.set_lock import locked_set
from trtconv.core.ledger.options import recorded_options
from trtconv.core.ledger.records import LedgerEntry, Proof, Rejected, RewriteLedger, Skipped
from trtconv.core.ledger.writing import write_ledger
from trtconv.core.model.bodies import computing_nodes
from trtconv.core.model.file import load_model, model_files, require_weights, save_model
from trtconv.core.model.opset import opset_of
from trtconv.core.precision import HALF_NAMES
from trtconv.core.progress import Progress
from trtconv.core.requests import RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.alignment.align import settle_sizes
from trtconv.rewrite.engine.plugin_choice import require_known, select_paying_rules, with_declined, with_plugin_rules
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.precision_rules import is_of_precision, shape_for_precision
from trtconv.rewrite.engine.refuse import refuse_silently_wrong
from trtconv.rewrite.engine.result import RewriteResult, RewrittenGraph
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, taken_back
from trtconv.rewrite.engine.rule import Rule
from trtconv.rewrite.engine.user_rules import load_rules
from trtconv.rewrite.engine.whole import InitialGraph, unreadable
from trtconv.rewrite.fixed_rows.settle import settle_rows
from trtconv.rewrite.graph.fragment import with_plugin_bodies
from trtconv.rewrite.graph.observed import observe
from trtconv.rewrite.lowering import level_branches as leveling
from trtconv.rewrite.lowering.branch_sizes import require_alike_branches
from trtconv.rewrite.lowering.float64 import Narrowed, kept_of, require_equal, without_float64
from trtconv.rewrite.lowering.float64_digits import require_digits, require_usual_digits
from trtconv.rewrite.lowering.float64_range import require_within_float32
from trtconv.rewrite.lowering.float64_sizes import require_same_sizes
from trtconv.rewrite.lowering.initializers import defaults, with_fixed_weights
from trtconv.rewrite.lowering.wide_integers import require_32_bits
from trtconv.rewrite.precision.qdq.data_reference import SUFFIX, write_data_reference
from trtconv.rewrite.precision.qdq.fold_batch_norm import RULE as FOLD_BATCH_NORM
from trtconv.rewrite.precision.qdq.step import quantise_step, require_data
from trtconv.rewrite.precision.typed import apply_precision, require_half
from trtconv.rewrite.rules import RULES
from trtconv.rewrite.surgery.operate import Surgery, operate
from trtconv.rewrite.surgery.script import load_script
from trtconv.rewrite.takeover import files_read, take_over
from trtconv.rewrite.whole_graph import rewrite_graph

if TYPE_CHECKING:
    import onnx


def rewrite_model(request: RewriteRequest, progress: Progress) -> RewriteResult:
    """Rewrite a model for its target, prove each rewrite, write the model and the ledger beside it.

    Raises InvalidRequestError for an unknown rule name, a file that is not ONNX or an output that cannot be written.
    """
    started = time.perf_counter()
    ledger = beside(request.output, ".rewrites.json")
    outputs = (request.output, ledger, *([beside(request.output, SUFFIX)] if request.quantised else ()))
    for output in outputs:
        require_writable(output)
    require_replaceable(request.output, MODEL)
    require_data(request)
    with locked_set(request.output):
        return _rewrite(request, outputs, progress, started)


def _rewrite(request: RewriteRequest, outputs: tuple[Path, ...], progress: Progress, started: float) -> RewriteResult:
    loaded = load_model(request.model)
    require_weights(request.model, loaded)
    source = with_fixed_weights(loaded)
    read = (*model_files(request.model, source), *request.rule_files, *request.plugin_libraries)
    earlier, rules = request.rewritten, (*RULES, *load_rules(request.rule_files))
    if earlier is None:
        require_distinct(outputs, read)
        graph = _apply_rules(source, select_rules(rules, request), request, progress)
    else:
        require_distinct(outputs, (*read, earlier, beside(earlier, ".rewrites.json")))
        graph = take_over(request, earlier)
    half = request.rest if request.quantised else request.precision
    # What the author computed in FP64 has need of more than half precision.
    wide = graph.float64_nodes if half in HALF_NAMES else ()
    typed = _in_precision(graph, source, rules, request, wide, progress)
    result = RewriteResult(
        request.output,
        outputs[1],
        (*graph.entries, *typed.entries),
        (*graph.skipped, *typed.skipped),
        (*graph.rejected, *typed.rejected),
        time.perf_counter() - started,
        graph.whole,
        (*graph.notes, *typed.notes),
        typed.reference,
    )
    save_model(typed.model, request.output, weights_from=graph.file)
    write_ledger(result.ledger, _ledger(request, result, graph, typed.model))
    return result


def _apply_rules(
    source: onnx.ModelProto, rules: Sequence[Rule], request: RewriteRequest, progress: Progress
) -> RewrittenGraph:
    """The model without what its target lacks, each rewrite and the whole proved."""
    surgery = _operated(with_plugin_bodies(source), request, progress)
    settled, undefined = settle_sizes(surgery.model, request, progress)
    settled, fixed = settle_rows(settled, request, progress)
    space, specs = model_space(settled)
    narrowed = _narrowed(settled, request, space, specs)
    original = narrowed.model
    declined: dict[tuple[str, str], Skipped] = {}
    rules = select_paying_rules(rules, request, original, space, specs, declined)
    setting = RewriteSetting(request.target, space, specs, request.proof)
    model, record, whole = _rewrite_and_prove(original, rules, setting, progress)
    provable = request.proof and not unreadable(model)
    if provable:
        require_alike_branches(model, setting)
        require_32_bits(model, setting)
    observations = observe(model, space, specs, request.target) if provable else ()
    if whole is not None and whole.infinity:
        record.notes.append(f"with an infinity in an input the rewritten graph differs: {whole.infinity}")
    notes = (*surgery.notes, *undefined, *fixed, *narrowed.notes, *record.notes, *observations, *defaults(model))
    return RewrittenGraph(
        request.model,
        model,
        (*surgery.entries, *record.entries),
        with_declined(record.skipped, record.entries, declined),
        tuple(record.rejected),
        whole,
        notes,
        kept_of(narrowed, model),
        {"opset": opset_of(original), "nodes": len(computing_nodes(original.graph)), "space": model_space(original)[0]},
    )


def _narrowed(
    model: onnx.ModelProto, request: RewriteRequest, space: ShapeSpace, specs: tuple[TensorSpec, ...]
) -> Narrowed:
    """The model without FP64, which TensorRT lacks, proved equal to what FP64 computes."""
    narrowed = without_float64(model)
    if request.proof and narrowed.nodes:
        with InitialGraph(model, space, specs) as before:
            require_equal(before, narrowed, request.target)
            require_same_sizes(model, narrowed, space, specs, request.target)
            if not before.unreadable:
                require_within_float32(model, narrowed, space, specs, request.target)
                require_usual_digits(model, narrowed, space, specs, request.target)
                narrowed = replace(narrowed, lost=require_digits(model, narrowed, space, specs, request.target))
    return narrowed


@dataclass(frozen=True)
class _TypedModel:
    """A model in the precision asked for. `reference` holds the user's data, where it was quantised by them."""

    model: onnx.ModelProto
    notes: tuple[str, ...]
    entries: tuple[LedgerEntry, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    reference: Path | None = None


def _in_precision(
    graph: RewrittenGraph,
    source: onnx.ModelProto,
    rules: Sequence[Rule],
    request: RewriteRequest,
    wide: tuple[str, ...],
    progress: Progress,
) -> _TypedModel:
    """Quantise or retype the graph; the nodes `wide` stay FP32."""
    if not request.quantised:
        shaped, record = shape_for_precision(graph, _chosen(rules, request), request, progress)
        in_fp32 = (*request.keep_fp32, *wide)
        model, notes = apply_precision(shaped, request.precision, graph.file.parent, in_fp32)
        return _TypedModel(
            model,
            (*record.notes, *notes),
            tuple(record.entries),
            tuple(record.skipped),
            tuple(record.rejected),
        )
    step = quantise_step(graph.model, request, progress, wide)
    reference = write_data_reference(source, request.model.parent, step.parts, request.output, step.model)
    return _TypedModel(step.model, step.notes, step.entries, step.skipped, reference=reference)


def _operated(model: onnx.ModelProto, request: RewriteRequest, progress: Progress) -> Surgery:
    """What the request's script makes of the model; the model itself when there is none."""
    if not request.script:
        return Surgery(model)
    surgery = operate(model, request.script, request.target, progress, proof=request.proof)
    with_plugin_bodies(surgery.model)
    return surgery


def require_request(request: RewriteRequest) -> None:
    """Raise InvalidRequestError for what is wrong with a request whatever the model: rules, files, plugins' names."""
    select_rules((*RULES, *load_rules(request.rule_files)), request)
    require_half(request.rest if request.quantised else request.precision, request.keep_fp32)
    require_data(request)
    if request.script:
        load_script(request.script)


def select_rules(rules: Sequence[Rule], request: RewriteRequest) -> tuple[Rule, ...]:
    """The rules that the target needs and those of `--also`, without those of `--skip`, only those of `--only`.

    Raises InvalidRequestError for a name that is not there, and for one that is asked for and left out at once.
    """
    names = [r.name for r in rules]
    double = next((n for n in names if names.count(n) > 1), None)
    if double:
        raise InvalidRequestError(f"the rule name '{double}' is given twice", hint="give your own rule another name")
    for name in (*request.only, *request.skip, *request.also):
        if name not in names:
            raise InvalidRequestError(
                f"no rule is called '{name}'{did_you_mean(name, names)}", hint="`trtconv rules` lists them"
            )
    for option, names_of_option in (("--also", request.also), ("--only", request.only)):
        contradictory = next((name for name in names_of_option if name in request.skip), None)
        if contradictory:
            raise InvalidRequestError(f"{option} and --skip both name '{contradictory}'", hint="leave one of them out")
    require_known(request, rules)
    folding = [FOLD_BATCH_NORM] if request.quantised or request.fold_norms else []
    chosen = [r for r in _chosen(rules, request) if not is_of_precision(r, request)]
    return with_plugin_rules([*folding, *chosen], request)


def _chosen(rules: Sequence[Rule], request: RewriteRequest) -> list[Rule]:
    """Those that the target needs and those of `--also`, without those of `--skip`, only those of `--only`."""
    only = {*request.only, *request.also} if request.only else {r.name for r in rules}
    chosen = [r for r in rules if r.name in only and r.name not in request.skip]
    return [r for r in chosen if r.name in request.also or r.needed(request.target)]


def _rewrite_and_prove(
    original: onnx.ModelProto, rules: Sequence[Rule], setting: RewriteSetting, progress: Progress
) -> tuple[onnx.ModelProto, RewriteRecord, Proof | None]:
    """Apply the rules; when the whole graph then differs, leave out the rule that makes it differ."""
    if not setting.proof:
        return *rewrite_graph(original, rules, setting, progress), None
    with InitialGraph(original, setting.space, setting.specs) as before:
        return _rewrite_and_compare(original, rules, replace(setting, changed=before.start), progress, before)


def _rewrite_and_compare(
    original: onnx.ModelProto, rules: Sequence[Rule], setting: RewriteSetting, progress: Progress, before: InitialGraph
) -> tuple[onnx.ModelProto, RewriteRecord, Proof | None]:
    model, record = rewrite_graph(original, rules, setting, progress)
    if not record.entries and not original.functions:
        return model, record, None
    progress.phase("whole graph", 0, 1)
    whole = before.compare(model)
    if whole.passed is not False:
        return model, record, whole
    fired = list(dict.fromkeys(e.rule for e in record.entries))
    for guilty in [[name] for name in reversed(fired)] + [fired]:
        remaining = [r for r in rules if r.name not in guilty]
        try:
            model, again = rewrite_graph(original, remaining, setting, progress, level=leveling.NAME not in guilty)
        except UnsupportedError:
            # Without it the target computes something else: it cannot be left out.
            continue
        second = before.compare(model)
        if second.passed is not False:
            again.rejected += [taken_back(e, whole) for e in record.entries if e.rule in guilty]
            return model, again, second
    # Without any rewrite the target may take the graph and compute something else.
    try:
        refuse_silently_wrong(original, setting.target, [])
    except UnsupportedError as error:
        raise AccuracyError(
            f"the rewritten graph differs from the original: {whole.note}",
            hint=f"{setting.target} cannot do without the rewrites; choose a newer target, or leave out one of them "
            "with --skip",
            details=[f"without rewrites: {error.message}", f"rewrites: {', '.join(fired)}"],
            where=error.where,
        ) from error
    return original, RewriteRecord(rejected=[taken_back(e, whole) for e in record.entries]), None


def _ledger(
    request: RewriteRequest, result: RewriteResult, graph: RewrittenGraph, after: onnx.ModelProto
) -> RewriteLedger:
    return RewriteLedger(
        trtconv=trtconv.__version__,
        model=Path(request.model).name,
        read=files_read(request),
        target=request.target,
        options=recorded_options(request),
        opset=(graph.start["opset"], opset_of(after)),
        nodes=(graph.start["nodes"], len(computing_nodes(after.graph))),
        space=graph.start["space"],
        float64_nodes=graph.float64_nodes,
        sha256=sha256_file(request.output),
        entries=result.entries,
        skipped=result.skipped,
        rejected=result.rejected,
        whole=result.whole,
        notes=result.notes,
    )
