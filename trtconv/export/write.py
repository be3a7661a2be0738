"""Writing the model, its reference and its manifest into place."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import Any

import trtconv
from trtconv.core.artifacts import beside, manifest_path
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.source_record import record_sources
from trtconv.core.model.file import load_model, save_model, set_metadata
from trtconv.core.model.provenance import REFERENCE_KEY
from trtconv.core.requests import ExportRequest, ModuleSource
from trtconv.core.tolerance import NO_LIMITS
from trtconv.export.exporters.choice import ChosenExport
from trtconv.export.live import state_digest
from trtconv.proof.reference import ReferenceInfo, write_reference

SCHEMA = 1


def write_artifacts(
    request: ExportRequest, choice: ChosenExport, notes: Sequence[str], read: Iterable[str] = ()
) -> None:
    """Write the three files, each atomically; the model last but the manifest, which names its hash.

    `read` are the files that were opened on the way; the user's among them are recorded as what the model came from.
    """
    names = tuple(choice.samples.items[0].outputs)
    points, spec = choice.samples.points, request.source.spec
    info = ReferenceInfo(points, request.inputs, names, request.space, spec)
    reference = beside(request.output, ".reference.safetensors")
    write_reference(reference, info, list(choice.samples.items))
    model = load_model(choice.candidate.model)
    # The model names its reference, so that a crash between the two, or files of two exports, show, also where the
    # manifest is gone. The reference holds what this CPU computed: on one that rounds otherwise, this is the property
    # in which the file differs.
    set_metadata(model, REFERENCE_KEY, sha256_file(reference))
    save_model(model, request.output, weights_from=choice.candidate.model)
    sources = record_sources(read, request.output, named=request.source.files, config=request.config)
    write_sealed(manifest_path(request.output), {**manifest(request, choice, notes), "sources": sources})


def manifest(request: ExportRequest, choice: ChosenExport, notes: Sequence[str]) -> dict[str, Any]:
    """Everything that tells how the model came to be; plain data for JSON. No times: equal inputs give equal bytes."""
    comparisons = choice.verdict.comparisons
    return {
        "schema": SCHEMA,
        "kind": "onnx",
        "source": {
            "spec": request.source.spec,
            "args": {k: str(v) for k, v in request.source.args},
            "weights": str(request.source.weights or ""),
            "sample": request.source.sample or "",
            "seed": request.source.seed,
            "path": [str(p) for p in request.source.paths],
            **_live(request.source),
        },
        "inputs": [str(s) for s in request.inputs],
        "outputs": list(choice.samples.items[0].outputs),
        "space": str(request.space),
        "traced": dict(choice.candidate.sizes),
        "exporter": choice.candidate.exporter,
        "opset": choice.candidate.opset,
        "why": [a.describe() for a in choice.attempts],
        "sha256": sha256_file(request.output),
        "reference_sha256": sha256_file(beside(request.output, ".reference.safetensors")),
        "tolerance": asdict(request.tolerance or NO_LIMITS),
        "largest_error": choice.verdict.worst,
        "comparisons": [c.as_dict() for c in comparisons],
        "advisory": [c.as_dict() for c in choice.verdict.advisory],
        "versions": versions(),
        "sizes": choice.sizes.as_dict() if choice.sizes else None,
        "notes": list(notes),
    }


def _live(source: ModuleSource) -> dict[str, Any]:
    """Of a live module, whose weights no file holds: its class, the file of that, and a digest of the weights."""
    if source.live is None:
        return {}
    file = str(source.live.file) if source.live.file else None
    return {"live": {"class": source.live.name, "file": file, "state_sha256": state_digest(source.live.module)}}


def versions() -> dict[str, str]:
    """The versions of what took part."""
    import onnx
    import onnxruntime
    import onnxscript
    import torch

    return {
        "trtconv": trtconv.__version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "onnx": onnx.__version__,
        "onnxscript": onnxscript.__version__,
        "onnxruntime": onnxruntime.__version__,
    }
