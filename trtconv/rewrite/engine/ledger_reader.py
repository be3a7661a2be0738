"""A ledger read back: what `ledger_data` wrote, as the results it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.model.provenance import Origin
from trtconv.core.report import OutputComparison
from trtconv.rewrite.engine.result import LedgerEntry, NodeText, Proof, Rejected, Skipped

# The fields of a comparison that are text. A number that is one was not finite, for which JSON has no form.
_TEXTS = ("output", "point", "reason")


def read_entries(data: Mapping[str, Any]) -> tuple[LedgerEntry, ...]:
    """The entries; those that point at one proof share it."""
    proofs = [_proof(p) for p in data["proofs"]]
    return tuple(
        LedgerEntry(
            e["rule"],
            e["why"],
            e["node"],
            _origin(e),
            e["scope"],
            _nodes(e["before"]),
            _nodes(e["after"]),
            proofs[e["proof"]],
            e["note"],
        )
        for e in data["entries"]
    )


def read_rejected(data: Mapping[str, Any]) -> tuple[Rejected, ...]:
    """The rewrites that were taken back."""
    return tuple(
        Rejected(r["rule"], r["node"], r["reason"], _origin(r), _proof(r["proof"]) if r["proof"] else None)
        for r in data["rejected"]
    )


def read_skipped(data: Mapping[str, Any]) -> tuple[Skipped, ...]:
    """The rules that left a node as it was."""
    return tuple(Skipped(s["rule"], s["node"], s["reason"], _origin(s)) for s in data["skipped"])


def read_whole(data: Mapping[str, Any]) -> Proof | None:
    """The comparison of the whole graph."""
    return _proof(data["whole_graph"]) if data["whole_graph"] else None


def _proof(data: Mapping[str, Any]) -> Proof:
    return Proof(
        data["passed"],
        data["runner"],
        tuple(data["points"]),
        tuple(tuple((name, tuple(shape)) for name, shape in shapes.items()) for shapes in data["shapes"]),
        tuple(_comparison(c) for c in data["comparisons"]),
        data["note"],
        data["node"],
        data["infinity"],
        data["sizes"],
    )


def _comparison(data: Mapping[str, Any]) -> OutputComparison:
    return OutputComparison(**{name: value if name in _TEXTS else _plain(value) for name, value in data.items()})


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return float(value)
    return tuple(value) if isinstance(value, list) else value


def _origin(data: Mapping[str, Any]) -> Origin:
    return Origin(data["module"], data["source"])


def _nodes(data: Sequence[Mapping[str, Any]]) -> tuple[NodeText, ...]:
    return tuple(NodeText(n["op"], n["name"], tuple(n["inputs"]), tuple(n["outputs"]), n["attributes"]) for n in data)
