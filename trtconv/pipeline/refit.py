"""`trtconv refit`: the same module with new weights, exported and rewritten as before, into the engine that is there.

Which numbers an engine needs is not written in a state dict: exporters merge equal constants and multiply some out,
rules fold norms into convolutions. So the module itself is exported with its new weights (or an ONNX file with them is
taken), the recorded rewrite is done again, and the tensors of that graph go into the engine by name, where the graph
is the same node by node. The engine is then proved as every other one is.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import beside, creating_folder
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.files.publish import publish
from trtconv.core.files.set_lock import locked_set
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.report import CheckReport
from trtconv.core.requests import CheckRequest, ExportRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.core.trust.trust import NO_CODE, EngineCode
from trtconv.originals import make_model, original_in_words
from trtconv.pipeline.report_files import write_report
from trtconv.pipeline.verdict import require_equal

if TYPE_CHECKING:
    from trtconv.build.refit import RefitResult
    from trtconv.foreign import ForeignRequest

MODEL, GRAPH, ENGINE = "model.onnx", "model.trt.onnx", "model.engine"


@dataclass(frozen=True)
class RefitRequest:
    """`engine` gets the weights of what `export` says; all files go into the folder `output`.

    `code` names code in the engine that may run.
    """

    engine: Path
    export: ExportRequest | ForeignRequest
    output: Path
    plugins: tuple[Path, ...] = ()
    code: EngineCode = NO_CODE


@dataclass(frozen=True)
class RefittedSet:
    """The files that were written, the weights that changed, and the proof of the engine."""

    files: tuple[Path, ...]
    refit: RefitResult
    report: CheckReport


def recorded_interface(engine: Path) -> tuple[tuple[TensorSpec, ...], ShapeSpace]:
    """The inputs and sizes of the model that an engine was built from: those of its export where that lies there."""
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.core.model.file import load_model, signature

    exported = beside(engine, ".onnx")
    if exported.is_file():
        described = signature(load_model(exported))
        return described.inputs, described.space
    manifest = read_engine_manifest(engine)
    return manifest.inputs, manifest.space


def refit(request: RefitRequest, progress: Progress | None = None) -> RefittedSet:
    """Export, rewrite as before, refit and check; publish the set when all of it holds.

    Raises UnsupportedError for an engine that takes no new weights or not these, InvalidRequestError where the weights
    make another graph, AccuracyError when the engine does not compute what the module with them does, and what the
    rooms raise. Nothing is written then.
    """
    from trtconv.build.refit import refit_engine, require_graph, require_refittable
    from trtconv.core.ledger.options import same_rewrite
    from trtconv.core.ledger.reading import read_ledger
    from trtconv.rewrite import rewrite_model

    progress = progress or SilentProgress()
    graph = beside(request.engine, ".trt.onnx")
    require_graph(request.engine, graph, require_refittable(request.engine))
    if request.output.resolve() == request.engine.parent.resolve():
        raise InvalidRequestError(
            f"'{request.output}' holds the engine that the weights go into", hint="name another folder with -o"
        )
    with private_temporary_folder("refit") as name:
        folder = Path(name)
        ledger = read_ledger(beside(request.engine, ".rewrites.json"))
        rewrite = same_rewrite(ledger, folder / MODEL, folder / GRAPH)
        progress.stage("export")
        make_model(replace(request.export, output=folder / MODEL), progress)
        progress.stage("rewrite")
        rewrite_model(rewrite, progress)
        progress.stage("refit")
        result = refit_engine(
            request.engine, graph, rewrite.output, folder / ENGINE, progress, plugins=request.plugins, code=request.code
        )
        report = _check_refitted(request, result.engine, progress)
        with creating_folder(request.output), locked_set(request.output / ENGINE):
            files = publish(folder, request.output)
    return RefittedSet(files, result, report)


def _check_refitted(request: RefitRequest, engine: Path, progress: Progress) -> CheckReport:
    """The report on the engine with its new weights, written beside it. Raises AccuracyError where it differs."""
    from trtconv.check import check_model

    progress.stage("check engine")
    check = CheckRequest(
        engine,
        reference=beside(engine, ".reference.safetensors"),
        sources_known=True,
        tolerance=request.export.tolerance,
        plugins=request.plugins,
        code=request.code,
    )
    report = check_model(check, progress, heat=True)
    require_equal(report, original_in_words(request.export))
    write_report(report, engine)
    return report
