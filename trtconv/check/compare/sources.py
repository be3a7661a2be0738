"""Is the artifact still what the sources make? Their recorded digests against what lies there now.

Without this a check in CI passes whatever happens to the module: it compares files of an export with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.check.compare.reference_fit import recorded_reference
from trtconv.core.artifacts import beside, read_json
from trtconv.core.files.artifact_set import EXPORT_AGAIN, read_sealed
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.source_record import SourceChange, changed_sources, exported_manifest, is_record
from trtconv.core.report import Finding
from trtconv.core.requests import CheckRequest
from trtconv.core.text.listing import list_first

SKIP = "--no-source-check compares an artifact that was moved away from its sources"


@dataclass(frozen=True)
class SourceVerdict:
    """`status`: `unchanged`, `changed`, `not compared` (asked for), `not recorded`, or empty for a foreign model."""

    status: str
    files: int = 0
    findings: tuple[Finding, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Plain data for the report."""
        return {"status": self.status, "files": self.files} if self.status else {}


def compare_sources(request: CheckRequest) -> SourceVerdict:
    """Errors (usage) for each source, weight file, data file or config section that changed since the export.

    A check against the module itself (`request.against`) shows what today's sources do, so nothing is compared then.
    Raises InvalidRequestError for a manifest that cannot be read.
    """
    if request.against is not None or request.sources_known or not request.subject.is_file():
        return SourceVerdict("")
    path = exported_manifest(request.subject, request.reference)
    manifest = read_sealed(path, "manifest", EXPORT_AGAIN) if path.is_file() else {}
    if not request.source_check:
        return SourceVerdict("not compared" if manifest or recorded_reference(request.subject) else "")
    record = manifest.get("sources")
    if not is_record(record):
        return _unrecorded(request, bool(manifest))
    model = path.with_name(path.name.removesuffix(".json"))
    records = [record, *_converted(request.subject)]
    changes = dict.fromkeys(c for r in records for c in changed_sources(r, model))
    source = manifest.get("source") if manifest.get("kind") == "onnx" else None
    live = _live_class(source)
    spec = str(source.get("spec", "")) if isinstance(source, Mapping) and not live else ""
    gone = [c for c in changes if c.what == "gone"]
    findings = tuple(_finding(change, model, spec) for change in changes if change not in gone)
    findings += (*_gone(gone, model), *_weights_unknown(model, live))
    wrong = any(f.level == "error" for f in findings)
    files = len({n for r in records for group in ("files", "outside") for n in r[group]})
    return SourceVerdict("changed" if wrong else "unchanged", files, findings)


def _live_class(source: Any) -> str:
    """The class of a module that was passed to trtconv.convert as it was; empty for one that a file makes."""
    live = source.get("live") if isinstance(source, Mapping) else None
    return str(live.get("class", "")) if isinstance(live, Mapping) else ""


def _weights_unknown(model: Path, live: str) -> tuple[Finding, ...]:
    if not live:
        return ()
    words = f"{_from_here(model)} was made from a live module of class {live}: no file holds its weights to compare"
    hint = f'trtconv.assert_equal(module, "{_from_here(model)}") compares with the module itself'
    return (Finding("note", "usage", words, hint),)


def _converted(subject: Path) -> tuple[Mapping[str, Any], ...]:
    """What `trtconv convert` recorded for its rewritten model and engine: rule files, plugins, more of the config."""
    stamp = beside(subject, ".convert.json")
    if subject == beside(subject, ".onnx") or not stamp.is_file():
        return ()
    data = read_json(stamp, "record of the conversion", "convert the model again")
    # A file that was built again by hand is not the conversion's any more.
    listed = data.get("set")
    own = isinstance(listed, Mapping) and [subject.name, sha256_file(subject)] in listed.values()
    record = data.get("sources")
    return (record,) if own and isinstance(record, Mapping) and is_record(record) else ()


def _unrecorded(request: CheckRequest, exported: bool) -> SourceVerdict:
    if not exported and not recorded_reference(request.subject):
        return SourceVerdict("")
    words = f"'{request.subject}' does not record its sources: whether they changed since was not compared"
    return SourceVerdict("not recorded", 0, (Finding("warning", "usage", words, "export the module again"),))


def _finding(change: SourceChange, model: Path, spec: str) -> Finding:
    subject = _from_here(model)
    if change.what == "changed":
        against = f", or check --against {spec}" if spec else ""
        words = f"{change.name} changed since {subject} was exported"
        return Finding("error", "usage", words, f"convert again{against}", source=f"{change.path}:1")
    words = f"{change.name}, which was read when {subject} was exported, is not on this machine"
    return Finding("note", "usage", words)


def _gone(changes: Sequence[SourceChange], model: Path) -> tuple[Finding, ...]:
    """One line, also for an artifact that was moved away from all of its sources."""
    if not changes:
        return ()
    subject = f"{list_first([c.name for c in changes], 1)}, from which {_from_here(model)} was exported,"
    return (Finding("error", "usage", f"{subject} {'are' if len(changes) > 1 else 'is'} gone", SKIP),)


def _from_here(path: Path) -> str:
    here = Path.cwd().resolve()
    resolved = path.resolve()
    return resolved.relative_to(here).as_posix() if resolved.is_relative_to(here) else str(path)
