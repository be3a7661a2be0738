"""`tune`: the fastest engine that keeps a contract, or nothing; with the evidence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import onnx

from trtconv.core.artifacts import creating_folder
from trtconv.core.data.samples import batches
from trtconv.core.data.source import DataSource, read_data
from trtconv.core.data.split import Parts, split
from trtconv.core.errors import (
    AccuracyError,
    InvalidRequestError,
    OverBudgetError,
    UnsupportedError,
)
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.publish import publish
from trtconv.core.model.file import load_model, signature
from trtconv.core.precision import HALF_NAMES, precision_named, require_capabilities
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import BuildRequest, ExportRequest, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.core.text.brief import brief_repr
from trtconv.foreign.request import ForeignRequest
from trtconv.originals import make_model
from trtconv.tune.candidates import Candidate, CandidateModels
from trtconv.tune.contract import Contract, parse_drop
from trtconv.tune.evidence import data_digest, evidence, read_chosen
from trtconv.tune.finalists import TuneVerdict, judge
from trtconv.tune.measure import Examiner
from trtconv.tune.metrics.registry import find_metric
from trtconv.tune.report import write_tune_report
from trtconv.tune.search import PrecisionSearch, SearchResult
from trtconv.tune.shipping import ship
from trtconv.tune.speed import Stopwatch, stopwatch_here
from trtconv.tune.state import SearchState

MODEL, STATE = "model.onnx", "model.tune-state.json"


@dataclass(frozen=True)
class TuneRequest:
    """What to convert, the contract, and where the files go. `repeat` is a ledger whose choice is taken unsearched."""

    export: ExportRequest | ForeignRequest
    rewrite: RewriteRequest
    build: BuildRequest
    contract: ContractRequest
    output: Path
    repeat: Path | None = None


@dataclass(frozen=True)
class TuneResult:
    """What ships, and the evidence as `evidence` makes it."""

    folder: Path
    files: tuple[Path, ...]
    verdict: TuneVerdict
    facts: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    __repr__ = brief_repr


def require_possible(request: TuneRequest) -> Contract:
    """Raise for what is wrong whatever the network is: an export may take minutes."""
    from trtconv.rewrite import require_request

    metric = find_metric(request.contract.metric)
    if not request.rewrite.data:
        raise InvalidRequestError(
            "tune needs data: a contract is judged on it", hint="--data FOLDER, FILE.npz or FILE.py:function"
        )
    DataSource(request.rewrite.data, request.rewrite.preprocess).require_readable()
    require_request(replace(request.rewrite, precision="auto", data=""))
    for name in request.contract.precisions:
        if not precision_named(name).is_in(request.rewrite.target):
            raise UnsupportedError(
                f"{request.rewrite.target} has no {name}", hint="leave it out of --precisions, or name another --target"
            )
        require_capabilities(name, request.build.compute_capabilities)
    return Contract(metric, parse_drop(request.contract.max_drop, metric))


def tune(request: TuneRequest, progress: Progress | None = None, *, stopwatch: Stopwatch | None = None) -> TuneResult:
    """Export, search, judge, and write the model that ships with its engine, ledger and report.

    `stopwatch` measures candidates; by default engines where there is a GPU. An interrupted run leaves its
    measurements in the output folder, and the next one goes on from there. Raises AccuracyError where the contract
    cannot be kept, OverBudgetError where nothing that keeps it is faster, and then writes nothing; and what the rooms
    raise.
    """
    progress = progress or SilentProgress()
    contract = require_possible(request)
    with private_temporary_folder("tune") as name:
        folder = Path(name)
        progress.stage("export")
        make_model(replace(request.export, output=folder / MODEL), progress)
        return tune_exported(request, folder, contract, progress, stopwatch)


def tune_exported(
    request: TuneRequest, folder: Path, contract: Contract, progress: Progress, stopwatch: Stopwatch | None = None
) -> TuneResult:
    """The same for a model that lies in `folder` as `model.onnx`; all of that folder is published in the end."""
    from trtconv.rewrite import rewrite_model

    stopwatch = stopwatch or stopwatch_here(request.build, progress)
    plain = folder / "plain.onnx"
    with creating_folder(request.output):
        progress.stage("rewrite")
        base = replace(request.rewrite, model=folder / MODEL, precision="auto", keep_fp32=(), data="", fold_norms=True)
        rewrite_model(replace(base, output=plain), progress)
        progress.stage("search")
        model = load_model(plain, weights=True)
        parts = _read_parts(request, model, contract)
        state = _state(request, model, parts)
        if state.resumed:
            progress.note(f"goes on from {state.resumed} measurements of an earlier run")
        examiner = _examiner(request, model, parts, contract, state, progress)
        with state:
            verdict, results = _judged(request, examiner, contract, progress, stopwatch)
        facts = evidence(contract, examiner, parts, results, verdict, examiner.noise_floor())
        progress.stage("write")
        final = replace(base, output=folder / "model.trt.onnx", data=request.rewrite.data)
        facts, notes = ship(final, request.build, examiner, contract, verdict, facts, progress)
        files = publish(folder, request.output, without=("plain",))
        files += write_tune_report(request.output / final.output.name, facts, notes)
        state.remove()
    return TuneResult(request.output, files, verdict, facts, notes)


def _judged(
    request: TuneRequest, examiner: Examiner, contract: Contract, progress: Progress, stopwatch: Stopwatch | None
) -> tuple[TuneVerdict, tuple[SearchResult, ...]]:
    results = _search(request, examiner, contract, progress)
    progress.stage("judge")
    try:
        return judge(examiner, contract, results, progress, stopwatch), results
    except (AccuracyError, OverBudgetError):
        if all(r.complete for r in results):
            examiner.state.remove()
        raise


def _read_parts(request: TuneRequest, model: onnx.ModelProto, contract: Contract) -> Parts:
    source = DataSource(request.rewrite.data, request.rewrite.preprocess)
    parts = split(read_data(source, signature(model).inputs))
    contract.metric.require_labels([s.label for s in (*parts.search, *parts.judging)])
    return parts


def _state(request: TuneRequest, model: onnx.ModelProto, parts: Parts) -> SearchState:
    path = request.output / STATE
    if request.contract.restart:
        path.unlink(missing_ok=True)
    graph = hashlib.sha256(model.graph.SerializeToString(deterministic=True)).hexdigest()
    key = {
        "graph": graph,
        "data": data_digest(parts),
        "metric": request.contract.metric,
        "calibration": request.rewrite.calibration,
        "target": str(request.rewrite.target),
    }
    return SearchState(path, key)


def _examiner(
    request: TuneRequest,
    model: onnx.ModelProto,
    parts: Parts,
    contract: Contract,
    state: SearchState,
    progress: Progress,
) -> Examiner:
    described = signature(model)
    runs = tuple(batches(parts.calibration, described.inputs, described.space))
    models = CandidateModels(model, request.rewrite.target, runs, request.rewrite.calibration, progress)
    shown = {"search": parts.search, "judging": parts.judging}
    return Examiner(models, contract.metric, shown, described.inputs, described.space, state, request.contract.minutes)


def _search(
    request: TuneRequest, examiner: Examiner, contract: Contract, progress: Progress
) -> tuple[SearchResult, ...]:
    """One search per precision, halves first: the best of them is what INT8 and FP8 leave the rest in."""
    if request.repeat is not None:
        chosen = read_chosen(request.repeat)
        return (SearchResult(chosen.precision, chosen, (), ()),)
    names = request.contract.precisions
    results: list[SearchResult] = []
    rest = Candidate()
    for name in (*(n for n in names if n in HALF_NAMES), *(n for n in names if n not in HALF_NAMES)):
        base = Candidate(name)
        if name not in HALF_NAMES and rest.groups:
            base = Candidate(name, (), rest.precision, examiner.models.assignment(rest).keep_fp32)
        try:
            result = PrecisionSearch(examiner, contract, base, progress).run()
        except UnsupportedError as error:
            if len(names) == 1:
                raise
            progress.warn(error.message)
            continue
        results.append(result)
        if name in HALF_NAMES and result.best is not None and not rest.groups:
            rest = result.best
    return tuple(results)
