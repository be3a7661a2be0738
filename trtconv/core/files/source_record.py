"""What an artifact was made from: SHA-256 of the module's sources, weights and data, and of the config's sections.

A record is plain data that stands in a manifest. Paths near the artifact (below the working directory, or below the
folder above the artifact's) are written as seen from the artifact, so that a checkout elsewhere is recognized;
others are absolute. Of the config file only the sections that shape the artifact count: a new budget changes nothing.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import sysconfig
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeGuard

from trtconv.core.artifacts import beside, manifest_path
from trtconv.core.config import toml_reader
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.real_paths import RealPaths

EXPORT_SECTIONS = ("model", "input", "dynamic", "export")
REWRITE_SECTIONS = (*EXPORT_SECTIONS, "rewrite")
BUILD_SECTIONS = (*REWRITE_SECTIONS, "build")
_SYSTEM = ("/proc", "/sys", "/dev", "/etc", "/usr/lib", "/usr/share", "/run")
_COMPANIONS = (
    ".onnx", ".onnx.data", ".onnx.json", ".trt.onnx", ".trt.onnx.data", ".trt.onnx.json", ".reference.safetensors",
    ".rewrites.json", ".engine", ".engine.json", ".report.json", ".report.html", ".convert.json", ".timing.cache",
)  # fmt: skip


@dataclass(frozen=True)
class SourceChange:
    """A file or section of the config that is not what it was: `what` is `changed`, `gone` or `absent`.

    `absent` is a file outside the project that was read and not named, such as a download in a cache.
    """

    name: str
    what: str
    path: Path


def user_files(paths: Iterable[str | Path], artifact: Path) -> tuple[Path, ...]:
    """The files that are the user's: neither installed packages, nor the system's, nor what stands beside `artifact`.

    `artifact` is one of the files that are being written; its companions (manifest, reference, engine) are left out,
    but not other files in the same folder.
    """
    installed = {sysconfig.get_paths()[k] for k in ("stdlib", "platstdlib", "purelib", "platlib")}
    own = str(Path(__file__).resolve().parents[2])
    outside = tuple(f"{o.rstrip('/')}/" for o in (*_SYSTEM, *installed, own))
    written = {beside(artifact.resolve(), suffix) for suffix in _COMPANIONS}
    chosen: dict[Path, None] = {}
    real = RealPaths()
    for text in sorted(map(str, paths)):
        path = _source_of(Path(text), real)
        if path.is_file() and not str(path).startswith(outside) and path not in written:
            chosen[path] = None
    return tuple(chosen)


def _source_of(path: Path, real: RealPaths) -> Path:
    if path.suffix == ".pyc":
        try:
            path = Path(importlib.util.source_from_cache(str(path)))
        except ValueError:
            return path
    return Path(real.of(str(path)))


def record_sources(
    paths: Iterable[str | Path],
    artifact: Path,
    *,
    named: Iterable[Path] = (),
    config: Path | None = None,
    sections: tuple[str, ...] = EXPORT_SECTIONS,
) -> dict[str, Any]:
    """The record of the user's files among `paths`, and of the named sections of `config`, for a manifest.

    `named` are those that have to be there wherever they lie; others outside the project only must not have changed.
    """
    own_config = config.resolve() if config is not None else None
    required = set(user_files(named, artifact))
    record: dict[str, Any] = {"files": {}, "outside": {}}
    near, folder = _near(artifact), artifact.resolve().parent
    for path in (p for p in user_files({*map(str, paths), *map(str, required)}, artifact) if p != own_config):
        name = _portable(path, folder, near)
        group = "outside" if Path(name).is_absolute() and path not in required else "files"
        record[group][name] = sha256_file(path)
    if own_config is not None:
        record["config"] = {"path": _portable(own_config, folder, near), "sections": _digests(own_config, sections)}
    return record


def changed_sources(record: Mapping[str, Any], artifact: Path) -> tuple[SourceChange, ...]:
    """What differs now from the record that stands beside `artifact`; `gone` where nothing is left to compare."""
    changes = []
    for group, missing in (("files", "gone"), ("outside", "absent")):
        for name, digest in record.get(group, {}).items():
            path = _located(name, artifact)
            if not path.is_file():
                changes.append(SourceChange(_shown(path), missing, path))
            elif sha256_file(path) != digest:
                changes.append(SourceChange(_shown(path), "changed", path))
    config = record.get("config")
    if config:
        path = _located(config["path"], artifact)
        if not path.is_file():
            changes.append(SourceChange(_shown(path), "gone", path))
        else:
            now = _digests(path, tuple(config["sections"]))
            wrong = [f"[{s}]" for s, digest in config["sections"].items() if now[s] != digest]
            if wrong:
                changes.append(SourceChange(f"{' and '.join(wrong)} of {_shown(path)}", "changed", path))
    return tuple(changes)


def is_record(data: Any) -> TypeGuard[Mapping[str, Any]]:
    """True for data of the form that `record_sources` gives."""
    if not isinstance(data, Mapping) or not all(_is_digests(data.get(group)) for group in ("files", "outside")):
        return False
    config = data.get("config")
    if config is None:
        return True
    return isinstance(config, Mapping) and isinstance(config.get("path"), str) and _is_digests(config.get("sections"))


def _is_digests(data: Any) -> bool:
    return isinstance(data, Mapping) and all(isinstance(k, str) and isinstance(v, str) for k, v in data.items())


def exported_manifest(subject: Path, reference: Path | None) -> Path:
    """The manifest of the export that `subject` came from: beside it, else beside the reference that was named."""
    own = manifest_path(beside(subject, ".onnx"))
    if own.is_file() or reference is None:
        return own
    stem = reference.name.removesuffix(".reference.safetensors")
    return manifest_path(reference.with_name(stem + ".onnx"))


def _digests(config: Path, sections: tuple[str, ...]) -> dict[str, str]:
    try:
        data = toml_reader().loads(config.read_text(encoding="utf-8"))
    except (ValueError, OSError):
        data = {}
    texts = {s: json.dumps(data.get(s), sort_keys=True, default=str) for s in sections}
    return {s: hashlib.sha256(text.encode()).hexdigest() for s, text in texts.items()}


def _near(artifact: Path) -> tuple[str, ...]:
    """The folders below which files are named as seen from the artifact."""
    folder = artifact.resolve().parent
    return tuple(str(r) for r in (Path.cwd().resolve(), folder, folder.parent) if r != Path(r.anchor))


def _portable(path: Path, folder: Path, near: Iterable[str]) -> str:
    if any(str(path) == root or str(path).startswith(root + os.sep) for root in near):
        return PurePath(os.path.relpath(path, folder)).as_posix()
    return path.as_posix()


def _located(name: str, artifact: Path) -> Path:
    return Path(os.path.normpath(artifact.resolve().parent / name))


def _shown(path: Path) -> str:
    here = Path.cwd().resolve()
    return path.relative_to(here).as_posix() if path.is_relative_to(here) else str(path)
