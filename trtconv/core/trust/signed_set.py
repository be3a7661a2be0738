"""The files of a conversion that one signature covers, and whether they belong together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import beside, manifest_path, read_json, require_file
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.artifact_set import EXPORT_AGAIN, MIXED_SET, FileDigest, digest_set, read_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.ledger.records import RewriteLedger

SIGNATURE, ATTESTATION, BOM = ".sig", ".attestation.json", ".cdx.json"


@dataclass(frozen=True)
class SignedSet:
    """The files beside `subject` by role; `plugin:NAME` and `weights:NAME` are files that a manifest names.

    Roles are those of `digest_set`, and `report`, `report_page`, `attestation`, `bom`. Manifests are parsed, empty
    where there is none; `ledger` is read by its types, None where there is none.
    """

    subject: Path
    files: Mapping[str, FileDigest]
    engine_manifest: Mapping[str, Any]
    model_manifest: Mapping[str, Any]
    ledger: RewriteLedger | None
    report: Mapping[str, Any]

    @property
    def folder(self) -> Path:
        """The folder in which all files lie."""
        return self.subject.parent

    def digest(self, role: str) -> str:
        """The SHA-256 of a role, empty where the set has none."""
        return self.files[role].sha256 if role in self.files else ""


def read_set(subject: Path) -> SignedSet:
    """The set that `subject` (a model or an engine) is part of. Raises InvalidRequestError for manifests and a ledger
    that cannot be read or were edited.
    """
    require_file(subject, "model or engine")
    files = digest_set(subject)
    parsed = {
        role: read_sealed(subject.with_name(files[role].name), role.replace("_", " "), hint) if role in files else {}
        for role, hint in (("manifest", "build the engine again"), ("model_manifest", EXPORT_AGAIN))
    }
    reports = (("report", ".report.json"), ("report_page", ".report.html"))
    for role, suffix in (*reports, ("attestation", ATTESTATION), ("bom", BOM)):
        path = beside(subject, suffix)
        if path.is_file():
            files[role] = FileDigest(path.name, sha256_file(path))
    for kind, key in (("weights", "model_files"), ("plugin", "plugins")):
        for name in _names(parsed["manifest"].get(key), manifest_path(subject)):
            path = subject.with_name(name)
            if path.is_file() and name not in {f.name for f in files.values()}:
                files[f"{kind}:{name}"] = FileDigest(name, sha256_file(path))
    report = read_json(subject.with_name(files["report"].name), "report") if "report" in files else {}
    ledger = read_ledger(subject.with_name(files["ledger"].name)) if "ledger" in files else None
    return SignedSet(subject, dict(sorted(files.items())), parsed["manifest"], parsed["model_manifest"], ledger, report)


def require_consistent(files: SignedSet) -> None:
    """Raise InvalidRequestError unless every digest that one file of the set records of another is that file's."""
    manifest, model = files.engine_manifest, files.model_manifest
    recorded = [
        ("engine", manifest.get("engine_sha256"), "manifest"),
        ("ledger", manifest.get("ledger_sha256"), "manifest"),
        ("reference", manifest.get("reference_sha256"), "manifest"),
        ("model", model.get("sha256"), "model_manifest"),
        ("reference", model.get("reference_sha256"), "model_manifest"),
        ("rewritten", files.ledger.sha256 if files.ledger else "", "ledger"),
    ]
    by_name = {f.name: (role, f.sha256) for role, f in files.files.items()}
    for key in ("model_files", "plugins"):
        for name, digest in (manifest.get(key) or {}).items():
            if name in by_name:
                recorded.append((by_name[name][0], digest, "manifest"))
    for role, digest, owner in recorded:
        if digest and role in files.files and files.digest(role) != digest:
            raise InvalidRequestError(
                f"'{files.files[role].name}' is not the one that '{files.files[owner].name}' describes", hint=MIXED_SET
            )


def _names(table: Any, path: Path) -> list[str]:
    """The keys of a table of files. Raises InvalidRequestError for one that would leave the folder."""
    names = sorted(table) if isinstance(table, dict) else []
    for name in names:
        if not name or name in (".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise InvalidRequestError(f"'{path}' names the file '{name}', outside of its folder", hint=MIXED_SET)
    return names
