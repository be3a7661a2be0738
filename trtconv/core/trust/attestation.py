"""What was proved of each file, from what: an in-toto statement with the provenance predicate of SLSA.

https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md and https://slsa.dev/spec/v1.0/provenance. The
statement lies in the signed set, so that the set's signature covers it. It holds no time and no path of the machine,
and is the same for the same files.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from trtconv.core.ledger.records import Proof
from trtconv.core.trust.signed_set import SignedSet

STATEMENT, PROVENANCE = "https://in-toto.io/Statement/v1", "https://slsa.dev/provenance/v1"
BUILDER = "https://github.com/trtconv/trtconv"
BUILD_TYPE = f"{BUILDER}/blob/main/docs/explanation/trust.md#attestation"
_NOT_SUBJECTS = ("attestation", "bom")


def statement(files: SignedSet, version: str) -> dict[str, Any]:
    """The statement about a set; `version` is trtconv's."""
    manifest, model, ledger = files.engine_manifest, files.model_manifest, files.ledger
    tools = {**_versions(model), **({manifest["backend"]: manifest["version"]} if manifest else {})}
    return {
        "_type": STATEMENT,
        "subject": [_descriptor(files, role) for role in files.files if role not in _NOT_SUBJECTS],
        "predicateType": PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": BUILD_TYPE,
                "externalParameters": {
                    "space": manifest.get("space") or model.get("space") or (str(ledger.space) if ledger else ""),
                    "precision": manifest.get("precision", ""),
                    "target": str(ledger.target) if ledger else "",
                    "options": {k: str(v) for k, v in (manifest.get("options") or {}).items()},
                },
                "internalParameters": {"proofs": proofs(files)},
                "resolvedDependencies": [*_sources(model), *_libraries(files)],
            },
            "runDetails": {"builder": {"id": BUILDER, "version": {"trtconv": version, **tools}}, "metadata": {}},
        },
    }


def proofs(files: SignedSet) -> list[dict[str, Any]]:
    """Every proof that the set carries: of which file, from which parents, with what evidence and result."""
    rows = [_export_proof(files), *_rewrite_proofs(files), _check_proof(files)]
    return [row for row in rows if row is not None]


def _export_proof(files: SignedSet) -> dict[str, Any] | None:
    model = files.model_manifest
    if not model or "model" not in files.files:
        return None
    comparisons = model.get("comparisons") or []
    evidence = {"exporter": model.get("exporter", ""), "sizes": (model.get("sizes") or {}).get("text", "")}
    return _proof(
        files,
        "export",
        "the ONNX file computes what the module computes",
        ("model",),
        (),
        comparisons,
        evidence,
        sources=_sources(model),
    )


def _rewrite_proofs(files: SignedSet) -> Iterable[dict[str, Any]]:
    if files.ledger is None or "rewritten" not in files.files:
        return
    rules = {id(e.proof): e.rule for e in files.ledger.entries}
    for proof in files.ledger.proofs:
        claim = f"rule {rules[id(proof)]} computes what the nodes before it compute"
        yield _rewrite_proof(files, claim, proof, {"node": proof.node})
    if files.ledger.whole is not None:
        claim = "the rewritten graph computes what the graph before it computes"
        yield _rewrite_proof(files, claim, files.ledger.whole, {})


def _rewrite_proof(files: SignedSet, claim: str, proof: Proof, evidence: Mapping[str, Any]) -> dict[str, Any]:
    parents = [r for r in ("model", "model_weights") if r in files.files]
    compared = [{"passed": c.passed} for c in proof.comparisons]
    evidence = {**evidence, "passed": proof.passed, "runner": proof.runner}
    return _proof(files, "rewrite", claim, ("rewritten",), parents, compared, evidence)


def _check_proof(files: SignedSet) -> dict[str, Any] | None:
    """The check of the rewritten graph or the engine, where the report says by digest that it is of this set."""
    report = files.report
    checked = (report.get("extras") or {}).get("files") or {}
    role = next((r for r in ("engine", "rewritten", "model") if files.digest(r) == checked.get("subject")), None)
    if role is None or not files.digest("reference") or files.digest("reference") != checked.get("reference"):
        return None
    power = (report.get("extras") or {}).get("power") or {}
    evidence = {
        "passed": report.get("passed"),
        "runner": report.get("runner", ""),
        **({"power": f"{power.get('reported')} of {power.get('tried')}"} if power else {}),
    }
    original = report.get("original") or "the original"
    claim = f"{files.files[role].name} computes what {original} computes"
    return _proof(files, "check", claim, ("report",), (role, "reference"), report.get("comparisons") or [], evidence)


def _proof(
    files: SignedSet,
    step: str,
    claim: str,
    results: Iterable[str],
    parents: Iterable[str],
    comparisons: Iterable[Mapping[str, Any]],
    evidence: Mapping[str, Any],
    sources: Iterable[dict[str, Any]] = (),
) -> dict[str, Any]:
    compared = list(comparisons)
    passed = bool(evidence.get("passed", True)) and bool(compared) and all(c.get("passed") for c in compared)
    return {
        "step": step,
        "claim": claim,
        "passed": passed,
        "comparisons": len(compared),
        "parents": [*sources, *(_descriptor(files, role) for role in parents)],
        "result": [_descriptor(files, role) for role in results if role in files.files],
        "evidence": {k: v for k, v in evidence.items() if k != "passed"},
    }


def _descriptor(files: SignedSet, role: str) -> dict[str, Any]:
    file = files.files[role]
    return {"name": file.name, "digest": {"sha256": file.sha256}, "annotations": {"role": role}}


def _sources(model: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The module's source, what it imports, weights and data, by name and digest."""
    tables = model.get("sources") or {}
    rows = {n: d for key in ("files", "outside") for n, d in (tables.get(key) or {}).items() if isinstance(d, str)}
    # Folders of the machine that converted say nothing to others.
    return [{"name": n.replace("\\", "/").rpartition("/")[2], "digest": {"sha256": d}} for n, d in sorted(rows.items())]


def _libraries(files: SignedSet) -> list[dict[str, Any]]:
    table = files.engine_manifest.get("plugins") or {}
    return [{"name": n, "digest": {"sha256": d}, "annotations": {"role": "plugin"}} for n, d in sorted(table.items())]


def _versions(model: Mapping[str, Any]) -> dict[str, str]:
    return {str(k): str(v) for k, v in sorted((model.get("versions") or {}).items()) if k != "trtconv"}
