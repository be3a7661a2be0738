"""Which files belong together: the digests of a conversion's files, and manifests that carry one over themselves.

A digest in an unsigned file catches accidents, mixed sets and careless edits, not somebody who recomputes it. What is
to be signed is `digest_set`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import beside, manifest_path, read_json, write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import SEAL, sha256_file
from trtconv.core.files.output_paths import ENGINE_SUFFIXES

EXPORT_AGAIN = "export the module again"
# What to do where files of a set do not belong together.
MIXED_SET = (
    "it was changed after it was written, or the folder holds files of two conversions: run `trtconv convert` again"
)


@dataclass(frozen=True)
class FileDigest:
    """A file's name in its folder and the SHA-256 of its bytes, in hex."""

    name: str
    sha256: str


def digest_set(subject: Path) -> dict[str, FileDigest]:
    """The files of the conversion that `subject` (a model or an engine) is part of, by role; only those that exist.

    Roles: `engine`, `manifest` (the engine's), `rewritten` and `model` with their `..._weights`, `model_manifest`,
    `reference`, `data_reference` (of a quantised model), `ledger`.
    """
    engine = subject if subject.suffix in ENGINE_SUFFIXES else subject.with_name(beside(subject, ".engine").name)
    model, rewritten = beside(subject, ".onnx"), beside(subject, ".trt.onnx")
    paths = {
        "engine": engine,
        "manifest": manifest_path(engine),
        "rewritten": rewritten,
        "rewritten_weights": rewritten.with_name(rewritten.name + ".data"),
        "model": model,
        "model_weights": model.with_name(model.name + ".data"),
        "model_manifest": manifest_path(model),
        "reference": beside(subject, ".reference.safetensors"),
        "data_reference": beside(subject, ".data.safetensors"),
        "ledger": beside(subject, ".rewrites.json"),
    }
    return {role: FileDigest(p.name, sha256_file(p)) for role, p in paths.items() if p.is_file()}


def sealed(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data with the SHA-256 of its canonical JSON (sorted keys, no spaces) in it."""
    plain = {k: v for k, v in data.items() if k != SEAL}
    return {**plain, SEAL: _content_digest(plain)}


def require_seal(data: Mapping[str, Any], path: Path, hint: str) -> None:
    """Raise InvalidRequestError when the content is not what was sealed: somebody edited the file."""
    plain = {k: v for k, v in data.items() if k != SEAL}
    if data.get(SEAL) != _content_digest(plain):
        raise InvalidRequestError(f"'{path}' was changed after it was written", hint=hint)


def write_sealed(path: Path, data: Mapping[str, Any]) -> None:
    """Write a manifest as JSON, atomically, with its seal in it."""
    write_json(path, sealed(data))


def read_sealed(path: Path, what: str, hint: str) -> dict[str, Any]:
    """Read a manifest. Raises InvalidRequestError when it is missing, is no JSON or was edited."""
    data = read_json(path, what, hint)
    require_seal(data, path, hint)
    return data


def recorded_text(subject: Path, key: str, field: str) -> str:
    """What an ONNX file's metadata says under `key`, or an engine's manifest in `field`; empty where neither says it.

    Raises InvalidRequestError for a manifest that somebody edited.
    """
    from trtconv.core.model.file import load_structure

    if subject.suffix == ".onnx":
        return next((str(p.value) for p in load_structure(subject).metadata_props if p.key == key), "")
    manifest = manifest_path(subject)
    facts = read_sealed(manifest, "manifest", "build the engine again") if manifest.exists() else {}
    return str(facts.get(field, ""))


def _content_digest(data: Mapping[str, Any]) -> str:
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
