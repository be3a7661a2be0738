"""Taking over a foreign ONNX file: the counterpart of an export, without a module and without torch."""

from __future__ import annotations

import platform
import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trtconv
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.artifacts import beside, manifest_path, require_writable
from trtconv.core.errors import AccuracyError, UnsupportedError
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.output_paths import MODEL, require_distinct, require_replaceable
from trtconv.core.files.source_record import record_sources
from trtconv.core.model.drawing import describe_drawing, drawing_nodes
from trtconv.core.model.file import (
    load_model,
    model_files,
    require_weights,
    save_model,
    set_metadata,
    signature,
    weights_to_copy,
)
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import INPUTS_KEY, REFERENCE_KEY, SPACE_KEY
from trtconv.core.progress import Progress
from trtconv.core.tolerance import NO_LIMITS
from trtconv.foreign.names import chosen_names, rename_values, renamed_samples, renamed_specs
from trtconv.foreign.operators import require_operators
from trtconv.foreign.request import ForeignRequest
from trtconv.foreign.result import ForeignResult
from trtconv.foreign.samples import FilePoints, points_for, write_samples
from trtconv.foreign.write_dims import fix_inputs, write_dims
from trtconv.proof.comparison import describe_failure
from trtconv.proof.proving import ProofVerdict, prove
from trtconv.proof.sampling import Samples

if TYPE_CHECKING:
    import onnx

SCHEMA = 1
# The file that is taken over has the same nodes as the original: a few points show that nothing was lost on the way.
COMPARED = 3


def adopt_model(request: ForeignRequest, progress: Progress) -> ForeignResult:
    """Write the file under its new name, with named dims and ranges, and what it computes at the sample points.

    Nothing is written when it fails. Raises InvalidRequestError for dims without a range (with the line to type), names
    that do not fit and inputs that no engine can have, UnsupportedError for operators of trees and the like,
    TrtconvError where the file itself fails.
    """
    started = time.monotonic()
    reference, manifest = beside(request.output, ".reference.safetensors"), manifest_path(request.output)
    for output in (request.output, reference, manifest):
        require_writable(output)
    require_replaceable(request.output, MODEL)
    opened = load_model(request.original)
    require_weights(request.original, opened)
    require_operators(opened, request.original)
    sources = model_files(request.original, opened)
    require_distinct((request.output, reference, manifest), sources)
    weights_to_copy(opened, request.original, request.output)
    progress.stage("export")
    progress.phase("running the ONNX file at the sample points")
    file = points_for(request.original, request.inputs, request.space, seed=request.seed)
    file.space.require_within(signature(opened).space)
    samples = file.samples()
    model = load_model(request.original)
    _require_repeatable(request.original, model, file, samples)
    fix_inputs(model, file.fixed)
    notes = (*file.notes, *write_dims(model, file.inputs, samples.items), *samples.notes)
    names = chosen_names(request.original, model, file.inputs, request.inputs, request.output_names)
    if names.values or names.copies:
        rename_values(model, names)
        file = replace(file, inputs=renamed_specs(file.inputs, names))
        samples = replace(samples, items=renamed_samples(samples.items, names))
    _write_named(request, model, file, samples, reference)
    verdict = _prove_named(request, samples, reference)
    seconds = {"total": time.monotonic() - started}
    write_sealed(manifest, _manifest(request, file, samples, verdict, notes, model))
    runner = f"onnxruntime {file.original.version}"
    return ForeignResult(
        request.original,
        request.output,
        reference,
        manifest,
        runner,
        file.space,
        samples.points,
        verdict.comparisons,
        notes,
        seconds,
    )


def _require_repeatable(path: Path, model: onnx.ModelProto, file: FilePoints, samples: Samples) -> None:
    """Raise UnsupportedError where the file draws random numbers on the way to an output.

    Two runs of two sessions draw the same ones, so that a comparison of the file with itself would show nothing.
    """
    import numpy as np

    drawing = drawing_nodes(model.graph)
    for sample in samples.items if drawing else []:
        first, second = file.original(sample.inputs), file.original(sample.inputs)
        differing = [n for n, v in first.items() if not np.array_equal(v, second[n], equal_nan=v.dtype.kind == "f")]
        if differing:
            shown = ", ".join(describe_drawing(n) for n in drawing[:2])
            raise UnsupportedError(
                f"'{path}' draws random numbers ({shown}), so '{differing[0]}' differs from run to run",
                hint="an engine draws others: make the random tensor an input of the graph, or export the network in "
                "evaluation mode",
            )


def _write_named(
    request: ForeignRequest, model: onnx.ModelProto, file: FilePoints, samples: Samples, reference: Path
) -> None:
    """Write the model, under the user's names, and its reference. Its weights stay on disk."""
    set_metadata(model, SPACE_KEY, str(file.space))
    set_metadata(model, INPUTS_KEY, "\n".join(str(s) for s in file.inputs))
    write_samples(reference, file, samples)
    set_metadata(model, REFERENCE_KEY, sha256_file(reference))
    save_model(model, request.output, weights_from=request.original)


def _prove_named(request: ForeignRequest, samples: Samples, reference: Path) -> ProofVerdict:
    """The comparison of the model that was written with the original. Takes both files back where they differ."""
    verdict = prove(lambda: OnnxRuntimeRunner(request.output), samples.items[:COMPARED], request.tolerance)
    if verdict.failure is not None:
        for path in (request.output, reference):
            path.unlink()
        raise AccuracyError(
            f"'{request.original}' with named dims differs from itself: {describe_failure(verdict.failure)}",
            hint="please report this file",
        )
    return verdict


def _manifest(
    request: ForeignRequest,
    file: FilePoints,
    samples: Samples,
    verdict: ProofVerdict,
    notes: tuple[str, ...],
    model: onnx.ModelProto,
) -> dict[str, Any]:
    """How the model came to be, in the form of an export's manifest."""
    import onnx
    import onnxruntime

    sources = model_files(request.original, load_model(request.original))
    opset = opset_of(model)
    return {
        "schema": SCHEMA,
        "kind": "onnx",
        "source": {"spec": _seen_from_here(request.original), "foreign": True, "seed": request.seed},
        "inputs": [str(s) for s in file.inputs],
        "outputs": list(samples.items[0].outputs),
        "space": str(file.space),
        "exporter": f"{model.producer_name} {model.producer_version}".strip(),
        "opset": opset,
        "sha256": sha256_file(request.output),
        "reference_sha256": sha256_file(beside(request.output, ".reference.safetensors")),
        "tolerance": asdict(request.tolerance or NO_LIMITS),
        "largest_error": verdict.worst,
        "comparisons": [c.as_dict() for c in verdict.comparisons],
        "versions": {
            "trtconv": trtconv.__version__,
            "python": platform.python_version(),
            "onnx": onnx.__version__,
            "onnxruntime": onnxruntime.__version__,
        },
        "notes": list(notes),
        "sources": record_sources(sources, request.output, named=sources, config=request.config),
    }


def _seen_from_here(path: Path) -> str:
    here, resolved = Path.cwd().resolve(), path.resolve()
    return resolved.relative_to(here).as_posix() if resolved.is_relative_to(here) else path.as_posix()
