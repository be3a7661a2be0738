"""The ledger: `model.rewrites.json`, every rewrite with its proof. The same input gives the same bytes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import read_json, write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.provenance import Origin
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite.engine.result import LedgerEntry, NodeText, Proof, Rejected, RewriteResult, Skipped

SCHEMA = 1
# The options of a rewrite that are lists of names. Ledgers from before `also` lack it.
LISTS = ("keep_fp32", "only", "skip", "also")


def write_ledger(result: RewriteResult, path: Path, facts: dict[str, Any]) -> None:
    """Write the ledger; `facts` are target, opset and shape space."""
    write_json(path, {"schema": SCHEMA, **facts, **ledger_data(result)})


def recorded_options(request: RewriteRequest) -> dict[str, Any]:
    """What a rewrite was asked for besides its target, as far as it decides the graph; of files only their names."""
    return {
        "precision": request.precision,
        "proof": request.proof,
        "keep_fp32": list(request.keep_fp32),
        "only": list(request.only),
        "skip": list(request.skip),
        "also": list(request.also),
        "plugins": request.plugins,
        "nms": request.nms,
        "max_detections": request.max_detections,
        "fold_norms": request.fold_norms,
        "align": request.align,
        "pad_to_multiple": request.pad_to_multiple,
        "files": [Path(f).name for f in (*request.rule_files, *([request.script] if request.script else ()))],
    }


def same_rewrite(ledger: Path, model: Path, output: Path) -> RewriteRequest:
    """The request for what was done to another model, by its ledger: the same target, rules and precision.

    Raises InvalidRequestError for a ledger that does not say it, and for rules and scripts of the user's own, which may
    be other files by now.
    """
    facts = read_json(ledger, "ledger")
    try:
        options: dict[str, Any] = dict(facts["options"])
        files = options.pop("files")
        lists: dict[str, Any] = {name: tuple(map(str, options.pop(name, ()))) for name in LISTS}
        request = RewriteRequest(model, output, parse_target(str(facts["target"])), **lists, **options)
    except (KeyError, TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"'{ledger}' does not say how the graph was rewritten", hint="convert again"
        ) from error
    if files:
        raise InvalidRequestError(
            f"the graph was rewritten with {', '.join(map(str, files))}, which may be another file by now",
            hint="convert the module again",
        )
    return request


def ledger_data(result: RewriteResult) -> dict[str, Any]:
    """The ledger as plain data. Times are left out, so that equal runs give equal files."""
    # A network repeats its blocks, and equal blocks share one proof: it is written once, entries point at it.
    proofs = list({id(e.proof): e.proof for e in result.entries}.values())
    index = {id(p): i for i, p in enumerate(proofs)}
    return {
        "entries": [{**_entry(e), "proof": index[id(e.proof)]} for e in result.entries],
        "proofs": [_proof(p) for p in proofs],
        "rejected": [_rejected(r) for r in result.rejected],
        "skipped": [_skipped(s) for s in result.skipped],
        "whole_graph": _proof(result.whole),
        "notes": list(result.notes),
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
        {"op": n.op, "name": n.name, "inputs": n.inputs, "outputs": n.outputs, "attributes": n.attributes}
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
