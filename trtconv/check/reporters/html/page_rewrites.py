"""The ledger for the page: equal rewrites once, with a picture before and after and the places where they fired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.check.reporters.html.svg_graph import draw_nodes
from trtconv.core.ledger.records import LedgerEntry, NodeText, Proof, Rejected

MOST_DRAWN = 60
MOST_PLACES = 200


def rewrite_groups(entries: Sequence[LedgerEntry]) -> list[dict[str, Any]]:
    """One row per rule and form of the matched part, in the order of the ledger."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    for entry in entries:
        ops = [n.op for n in entry.before]
        key = (entry.rule, tuple(ops), tuple(n.op for n in entry.after))
        group = groups.get(key)
        if group is None:
            group = groups[key] = {
                "rule": entry.rule,
                "why": entry.why,
                "places": [],
                "count": 0,
                "error": None,
                "before": _picture(entry.before),
                "after": _picture(entry.after),
                "sizes": (len(entry.before), len(entry.after)),
                "proof": "",
                "ops": ", ".join(ops[:4]) + (", ..." if len(ops) > 4 else ""),
            }
        group["count"] += 1
        if len(group["places"]) < MOST_PLACES:
            group["places"].append({"node": entry.node, **vars(entry.origin)})
        _worst_proof(group, entry.proof)
    return list(groups.values())


def _picture(nodes: Sequence[NodeText]) -> str:
    return draw_nodes([vars(n) for n in nodes]) if 0 < len(nodes) <= MOST_DRAWN else ""


def _worst_proof(group: dict[str, Any], proof: Proof) -> None:
    error = proof.max_abs
    if error is not None and (group["error"] is None or error > group["error"]):
        group["error"] = error
    if proof.passed:
        group["proof"] = f"equal in {len(proof.comparisons)} comparisons, {proof.runner}"
    else:
        group["proof"] = f"not proved: {proof.note}"


def rejected_groups(rejected: Sequence[Rejected]) -> list[dict[str, Any]]:
    """Rewrites that were taken back, once per rule and reason with the first node."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for item in rejected:
        row = {"rule": item.rule, "node": item.node, "reason": item.reason, "count": 0}
        groups.setdefault((item.rule, item.reason), row)["count"] += 1
    return list(groups.values())
