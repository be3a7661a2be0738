"""Writing a ledger: the same rewrite gives the same bytes, sealed with the SHA-256 of what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import write_json
from trtconv.core.files.artifact_set import sealed
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Rejected, RewriteLedger, Skipped
from trtconv.core.model.provenance import Origin

SCHEMA = 2


def write_ledger(path: Path, ledger: RewriteLedger) -> None:
    """Write a ledger atomically."""
    write_json(path, sealed(ledger_data(ledger)))


def ledger_data(ledger: RewriteLedger) -> dict[str, Any]:
    """The ledger as plain data. Times are left out, so that equal runs give equal files."""
    index = {id(p): i for i, p in enumerate(ledger.proofs)}
    return {
        "schema": SCHEMA,
        "trtconv": ledger.trtconv,
        "model": ledger.model,
        "read": [{"name": f.name, "sha256": f.sha256} for f in ledger.read],
        "target": str(ledger.target),
        "options": {k: list(v) if isinstance(v, tuple) else v for k, v in ledger.options.items()},
        "opset": list(ledger.opset),
        "nodes": list(ledger.nodes),
        "space": str(ledger.space),
        "float64_nodes": list(ledger.float64_nodes),
        "sha256": ledger.sha256,
        "entries": [{**_entry(e), "proof": index[id(e.proof)]} for e in ledger.entries],
        "proofs": [_proof(p) for p in ledger.proofs],
        "rejected": [_rejected(r) for r in ledger.rejected],
        "skipped": [_skipped(s) for s in ledger.skipped],
        "whole_graph": _proof(ledger.whole),
        "notes": list(ledger.notes),
    }


def _entry(entry: LedgerEntry) -> dict[str, Any]:
    return {
        "rule": entry.rule,
        "why": entry.why,
        "node": entry.node,
        "scope": entry.scope,
        **_origin(entry.origin),
        "before": _nodes(entry.before),
        "after": _nodes(entry.after),
        "note": entry.note,
        "proof_shared_with": entry.shared_with,
    }


def _rejected(item: Rejected) -> dict[str, Any]:
    return {
        "rule": item.rule,
        "node": item.node,
        "reason": item.reason,
        **_origin(item.origin),
        "proof": _proof(item.proof),
    }


def _skipped(item: Skipped) -> dict[str, Any]:
    return {"rule": item.rule, "node": item.node, "reason": item.reason, **_origin(item.origin)}


def _origin(origin: Origin) -> dict[str, str]:
    return {"module": origin.module, "source": origin.source}


def _nodes(nodes: Sequence[NodeText]) -> list[dict[str, Any]]:
    # Not by dataclasses.asdict: it copies each string deeply, which shows when a graph has thousands of rewrites.
    return [
        {"op": n.op, "name": n.name, "inputs": list(n.inputs), "outputs": list(n.outputs), "attributes": n.attributes}
        for n in nodes
    ]


def _proof(proof: Proof | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        "passed": proof.passed,
        "node": proof.node,
        "runner": proof.runner,
        "note": proof.note,
        "points": list(proof.points),
        "infinity": proof.infinity,
        "sizes": proof.sizes,
        "max_abs": _number(proof.max_abs),
        "max_rel": _number(proof.max_rel),
        "shapes": [{name: list(shape) for name, shape in shapes} for shapes in proof.shapes],
        "comparisons": [c.as_dict() for c in proof.comparisons],
    }


def _number(value: float | None) -> float | str | None:
    return str(value) if value is not None and value - value != 0.0 else value
