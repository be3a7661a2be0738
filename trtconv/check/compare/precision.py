"""What computes in a subject: the precision that it was typed with, and is it an engine."""

from __future__ import annotations

from pathlib import Path

from trtconv.check.compare.subjects import is_engine
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import load_structure
from trtconv.core.model.provenance import PRECISION_KEY
from trtconv.core.precision import FP32, TF32
from trtconv.core.requests.build import is_on
from trtconv.proof.allowance import UNIT_ROUNDOFF, Arithmetic


def recorded_precision(subject: Path) -> str:
    """`fp16` or `bf16` where rewrite (ONNX) or build (engine) recorded it, else `fp32`."""
    if is_engine(subject):
        from trtconv.backends.tensorrt.manifest import read_engine_manifest

        try:
            return read_engine_manifest(subject).precision if manifest_path(subject).exists() else FP32.name
        except InvalidRequestError:
            return FP32.name
    metadata: dict[str, str] = {p.key: p.value for p in load_structure(subject).metadata_props}
    return metadata.get(PRECISION_KEY, FP32.name)


def arithmetic_of(subject: Path) -> Arithmetic:
    """The arithmetic of a subject, for what it may lose; TF32 where an FP32 engine was built with it."""
    precision = recorded_precision(subject)
    precision = precision if precision in UNIT_ROUNDOFF else FP32.name
    if precision == FP32.name and is_engine(subject) and _uses_tf32(subject):
        precision = TF32.name
    return Arithmetic(precision, is_engine(subject))


def _uses_tf32(engine: Path) -> bool:
    from trtconv.backends.tensorrt.manifest import read_engine_manifest

    try:
        options = read_engine_manifest(engine).options if manifest_path(engine).exists() else {}
    except InvalidRequestError:
        return False
    return is_on(options.get(TF32.name, False))
