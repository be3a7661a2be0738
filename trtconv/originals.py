"""What others are proved equal to: a module, which is exported, or a foreign ONNX file, which is taken over."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.progress import Progress
from trtconv.core.requests import ExportRequest
from trtconv.foreign.request import ForeignRequest
from trtconv.proof.original import FILE, MODULE

if TYPE_CHECKING:
    from trtconv.export import ExportResult
    from trtconv.foreign import ForeignResult


def original_in_words(request: ExportRequest | ForeignRequest) -> str:
    """What verdicts and errors call the original."""
    return FILE if isinstance(request, ForeignRequest) else MODULE


def original_files(request: ExportRequest | ForeignRequest) -> tuple[Path, ...]:
    """The files that the original is in, by which a conversion knows that nothing changed; weights among them."""
    if isinstance(request, ForeignRequest):
        from trtconv.core.model.file import load_model, model_files

        return model_files(request.original, load_model(request.original))
    source = request.source
    module_file = () if source.live else (source.base / source.spec,)
    return (*((source.weights,) if source.weights else ()), *module_file)


def make_model(request: ExportRequest | ForeignRequest, progress: Progress) -> ExportResult | ForeignResult:
    """The first room: `model.onnx` and its reference out of a module or a foreign file."""
    if isinstance(request, ForeignRequest):
        from trtconv.foreign import adopt_model

        return adopt_model(request, progress)
    from trtconv.export import export_model

    return export_model(request, progress)
