"""The tolerance of a check when the user names none: it follows the precision that the subject was typed with."""

from __future__ import annotations

from pathlib import Path

from trtconv.check.compare.subjects import is_engine
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import load_model
from trtconv.core.model.provenance import PRECISION_KEY
from trtconv.core.precision import FP32, HALVES
from trtconv.core.requests import CheckRequest
from trtconv.core.tolerance import DEFAULT_TOLERANCE, Tolerance

# ROUNDINGS unit roundoffs: 2^-11 for fp16 and 2^-8 for bf16 (IEEE 754-2019; bfloat16 has 8 bits of significand).
HALF_TOLERANCES = {
    p.name: Tolerance(p.allowance, p.allowance, why=f"twenty roundings of {p.name}") for p in HALVES
}


def chosen_tolerance(request: CheckRequest) -> Tolerance:
    """The tolerance of the request, or that of the subject's precision when the request has the plain default."""
    if request.tolerance != DEFAULT_TOLERANCE:
        return request.tolerance
    return HALF_TOLERANCES.get(recorded_precision(request.subject), DEFAULT_TOLERANCE)


def recorded_precision(subject: Path) -> str:
    """`fp16` or `bf16` where rewrite (ONNX) or build (engine) recorded it, else `fp32`."""
    if is_engine(subject):
        from trtconv.backends.tensorrt.manifest import read_engine_manifest

        try:
            return read_engine_manifest(subject).precision if manifest_path(subject).exists() else FP32.name
        except InvalidRequestError:
            return FP32.name
    found: dict[str, str] = {p.key: p.value for p in load_model(subject).metadata_props}
    return found.get(PRECISION_KEY, FP32.name)
