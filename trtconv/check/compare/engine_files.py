"""Checks that an engine belongs to the files beside it, from its manifest and therefore without a GPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from trtconv.check.compare.subjects import Subject
from trtconv.core.artifacts import beside, manifest_path
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.files.digest import sha256_file
from trtconv.core.ledger.reading import ledger_of
from trtconv.core.report import Finding
from trtconv.proof.reference import read_reference_info


def engine_problems(engine: Path, reference: Path | None, *, foreign: bool = False) -> tuple[Finding, ...]:
    """Errors for an engine that was built from another model than the one beside it, or than the reference's.

    Raises InvalidRequestError when the engine is not the one that its manifest describes, or has none and is not
    named as `foreign` (from elsewhere), which has nothing to compare.
    """
    from trtconv.backends.tensorrt.manifest import read_engine_manifest

    if foreign and not manifest_path(engine).exists():
        return ()
    manifest = read_engine_manifest(engine)
    findings = []
    for name, digest in manifest.model_files.items():
        model = engine.parent / name
        if model.exists() and sha256_file(model) != digest:
            findings.append(
                Finding(
                    "error",
                    "usage",
                    f"'{engine}' is stale: it was built from another '{name}' than the one beside it",
                    f"build it again: trtconv build {model} -o {engine}",
                )
            )
    findings += ledger_problems(engine, manifest.ledger_sha256)
    path = reference or beside(engine, ".reference.safetensors")
    if path.exists():
        findings += _foreign(
            engine,
            path,
            {s.name: str(s).partition("=")[0] for s in manifest.inputs},
            {s.name for s in manifest.outputs},
        )
    return tuple(findings)


def ledger_problems(subject: Path, recorded: str = "") -> tuple[Finding, ...]:
    """An error where the ledger beside a graph or an engine was edited or is another one's; as `ledger_of` says it."""
    try:
        ledger_of(subject, recorded)
    except InvalidRequestError as error:
        return (Finding("error", "usage", error.message, error.hint or ""),)
    return ()


def _foreign(engine: Path, path: Path, inputs: dict[str, str], outputs: set[str]) -> list[Finding]:
    try:
        info = read_reference_info(path)
    except InvalidRequestError as error:
        return [Finding("error", "usage", error.message, error.hint or "")]
    lacking = [n for n in inputs if n not in {s.name for s in info.inputs}]
    missing = [n for n in info.outputs if n not in outputs]
    wrong = [f"input '{n}'" for n in lacking] + [f"output '{n}'" for n in missing]
    if not wrong:
        return []
    has = "it has" if missing else "the reference has"
    return [
        Finding(
            "error",
            "usage",
            f"'{engine}' is an engine of another model than '{path.name}': {has} no {wrong[-1]}",
            "name its own reference with --reference FILE",
        )
    ]


def engine_layers(subject: Subject, runs: int = 20) -> list[dict[str, Any]]:
    """The layers of an open engine with their mean seconds over `runs` runs, as plain data; empty for an ONNX file."""
    if subject.engine is None:
        return []
    try:
        layers = subject.engine.layers(runs)
    except TrtconvError:
        return []
    return [
        {
            "name": layer.name,
            "kind": layer.kind,
            "tactic": layer.tactic,
            "seconds": layer.seconds,
            "dtype": ", ".join(dict.fromkeys(t.dtype for t in layer.outputs if t.dtype)),
        }
        for layer in layers
    ]
