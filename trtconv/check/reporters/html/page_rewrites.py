"""The ledger for the page: equal rewrites once, with a picture before and after and the places where they fired."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.check.reporters.html.svg_graph import draw_nodes

MOST_DRAWN = 60
MOST_PLACES = 200


def rewrite_groups(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """One entry per rule and form of the matched part, in the order of the ledger."""
    groups: dict[tuple[Any, ...], dict[str, Any]] = {}
    proofs = ledger.get("proofs", [])
    for entry in ledger.get("entries", []):
        before, after = entry.get("before", []), entry.get("after", [])
        key = (entry["rule"], tuple(n["op"] for n in before), tuple(n["op"] for n in after))
        group = groups.get(key)
        if group is None:
            group = groups[key] = {
                "rule": entry["rule"],
                "why": entry.get("why", ""),
                "places": [],
                "count": 0,
                "error": None,
                "before": _picture(before),
                "after": _picture(after),
                "sizes": (len(before), len(after)),
                "proof": "",
                "ops": ", ".join(n["op"] for n in before[:4]) + (", ..." if len(before) > 4 else ""),
            }
        group["count"] += 1
        if len(group["places"]) < MOST_PLACES:
            group["places"].append({k: entry.get(k, "") for k in ("node", "module", "source")})
        _worst_proof(group, proofs, entry.get("proof"))
    return list(groups.values())


def _picture(nodes: Sequence[Mapping[str, Any]]) -> str:
    return draw_nodes(nodes) if 0 < len(nodes) <= MOST_DRAWN else ""


def _worst_proof(group: dict[str, Any], proofs: Sequence[Mapping[str, Any]], index: Any) -> None:
    proof = proofs[index] if isinstance(index, int) and 0 <= index < len(proofs) else None
    if proof is None:
        return
    error = proof.get("max_abs")
    if isinstance(error, (int, float)) and (group["error"] is None or error > group["error"]):
        group["error"] = error
    compared = len(proof.get("comparisons", []))
    if proof.get("passed"):
        group["proof"] = f"equal in {compared} comparisons, {proof.get('runner', '')}"
    else:
        group["proof"] = f"not proved: {proof.get('note', '')}"


def rejected_groups(ledger: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Rewrites that were taken back, once per rule and reason with the first node."""
    groups: dict[tuple[str, str], dict[str, Any]] = {}
    for item in ledger.get("rejected", []):
        group = groups.setdefault((item["rule"], item["reason"]), {**item, "count": 0})
        group["count"] += 1
    return list(groups.values())
