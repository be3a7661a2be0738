"""What ships: made by the rewrite that the ledger names, judged as a file and, where that runs, as an engine."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.backends.select import backend_of
from trtconv.core.artifacts import beside, write_json
from trtconv.core.errors import AccuracyError, MissingDependencyError
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import load_model
from trtconv.core.progress import Progress
from trtconv.core.requests import BuildRequest, RewriteRequest
from trtconv.core.text.listing import list_first
from trtconv.rewrite.precision.qdq.ranges import threads_for
from trtconv.tune.candidates import Candidate
from trtconv.tune.contract import Contract
from trtconv.tune.engine_layers import EngineLayers, read_engine_layers
from trtconv.tune.evidence import SUFFIX
from trtconv.tune.finalists import TuneVerdict
from trtconv.tune.measure import Examiner, MetricScore
from trtconv.tune.speed import RUNS


def ship(
    final: RewriteRequest,
    build: BuildRequest,
    examiner: Examiner,
    contract: Contract,
    verdict: TuneVerdict,
    facts: Mapping[str, Any],
    progress: Progress,
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Write the model, its engine and its ledger; returns the facts with those of the files, and notes.

    Raises AccuracyError where a file is not as good as the candidate that was judged.
    """
    from trtconv.rewrite import rewrite_model

    candidate = verdict.chosen.candidate
    choice = examiner.models.assignment(candidate)
    final = replace(
        final,
        precision=choice.precision,
        keep_fp32=choice.keep_fp32,
        rest=choice.rest,
        quantise_only=choice.quantise_only,
        data=final.data if choice.quantise_only is not None else "",
    )
    result = rewrite_model(final, progress)
    model = load_model(final.output, weights=True)
    runner = emulated_runner(model, threads=threads_for(model))
    measured = _judged(contract, examiner, runner, "the model that was written")
    shipped: dict[str, Any] = {"judging": measured.value, "model_sha256": sha256_file(final.output)}
    build = replace(build, model=final.output, output=beside(final.output, ".engine"), precision=choice.precision)
    engine_facts, notes = _ship_engine(build, examiner, contract, candidate, progress)
    complete = {**facts, "shipped": shipped | engine_facts}
    write_json(beside(final.output, SUFFIX), complete)
    return complete, (*result.notes, *notes)


def _ship_engine(
    build: BuildRequest, examiner: Examiner, contract: Contract, candidate: Candidate, progress: Progress
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Build the engine, and judge it where one runs; returns its facts and notes."""
    from trtconv.build import build_engine

    try:
        build_engine(build, progress)
    except MissingDependencyError as error:
        return {}, (f"no engine was built: {error.message}",)
    if not probe_cuda().gpus:
        return {}, ()
    session = backend_of(build.output).load(build.output, plugins=build.plugins)
    layers = read_engine_layers(session.layers(runs=RUNS))
    judging = _judged(contract, examiner, session, "the engine that was built").value
    compared, note = _compare_layers(layers, examiner.models.nodes(candidate), build.precision)
    return {"engine_judging": judging, "engine_layers": compared}, (note,) if note else ()


def _compare_layers(layers: EngineLayers, chosen: Collection[str], precision: str) -> tuple[dict[str, Any], str]:
    """Which chosen nodes the engine computes in their precision, by its own account; a note where it does not."""
    elsewhere = layers.elsewhere(chosen, precision)
    facts = {
        **layers.as_dict(),
        "share_of_chosen": layers.share(chosen, precision),
        "chosen_elsewhere": list(elsewhere),
    }
    if not elsewhere:
        return facts, ""
    shown = list_first([f"'{n}' ({layers.nodes[n]})" for n in elsewhere], 5)
    return facts, f"the engine computes {len(elsewhere)} chosen nodes not in {precision}: {shown}"


def _judged(contract: Contract, examiner: Examiner, runner: Any, what: str) -> MetricScore:
    try:
        measured = examiner.judge(examiner.run(runner, "judging"), "judging")
    finally:
        runner.close()
    if not contract.holds(measured.value, examiner.baseline("judging").value):
        raise AccuracyError(
            f"{what} does not keep the contract that its candidate kept: {contract.metric.name} {measured.value:.4g}",
            hint="run it again: engines differ by the kernels that the builder's measurements choose",
        )
    return measured
