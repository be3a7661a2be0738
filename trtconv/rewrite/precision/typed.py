"""The last step of a rewrite: the graph carries the precision that was asked for."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import load_weights, set_metadata
from trtconv.core.model.provenance import PRECISION_KEY
from trtconv.core.precision import FP32, HALF_NAMES

if TYPE_CHECKING:
    import onnx


def require_half(precision: str, keep_fp32: Collection[str]) -> None:
    """Raise InvalidRequestError when nodes are to stay FP32 in a model that is in neither FP32 nor half precision."""
    if keep_fp32 and precision not in (FP32.name, *HALF_NAMES):
        raise InvalidRequestError(
            f"nodes are to stay FP32, but the precision is {precision}", hint="add --precision fp16, or bf16"
        )


def apply_precision(
    model: onnx.ModelProto, precision: str, folder: Path, keep_fp32: Collection[str] = ()
) -> tuple[onnx.ModelProto, tuple[str, ...]]:
    """The model typed as `precision`, and what the user should know; other precisions leave it as it is.

    External weights are read from `folder`, since their bytes change. The nodes named by `keep_fp32` stay in FP32.
    Raises what `convert_precision` raises.
    """
    if precision not in HALF_NAMES:
        require_half(precision, keep_fp32)
        return model, ()
    from trtconv.rewrite.precision import convert_precision

    load_weights(model, folder)
    report = convert_precision(model, precision, keep_nodes=keep_fp32)
    set_metadata(report.model, PRECISION_KEY, precision)
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(report.kinds().items()))
    notes = [f"{precision}: {report.nodes.get(precision, 0)} nodes in {precision}, {report.casts} casts inserted"]
    if kinds:
        notes.append(f"{precision}: {len(report.fp32_nodes)} nodes stay fp32 ({kinds})")
    if report.weights.overflowed or report.weights.underflowed:
        notes.append(
            f"{precision}: {report.weights.overflowed} weights are clamped, {report.weights.underflowed} become zero"
        )
    return report.model, tuple(notes)
