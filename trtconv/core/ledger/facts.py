"""What `trtconv inspect` says of the rewrite that a graph or an engine comes from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from trtconv.core.ledger.reading import ledger_of


def rewrite_facts(subject: Path, recorded: str = "") -> dict[str, str]:
    """Target and rules in words, empty where there is no ledger. Raises InvalidRequestError as `ledger_of` does."""
    raw = raw_rewrite_facts(subject, recorded)
    if not raw:
        return {}
    rules = ", ".join(f"{name} {count}" for name, count in raw["rules"].items()) or "none"
    back = f"; taken back: {raw['taken_back']}" if raw["taken_back"] else ""
    return {"rewritten for": f"{raw['target']}, by trtconv {raw['trtconv']}", "rewrites by rule": rules + back}


def raw_rewrite_facts(subject: Path, recorded: str = "") -> dict[str, Any]:
    """The same for JSON; `proved` is whether both whole graphs were compared and are equal."""
    ledger = ledger_of(subject, recorded)
    if ledger is None:
        return {}
    return {
        "target": str(ledger.target),
        "trtconv": ledger.trtconv,
        "rules": dict(sorted(Counter(e.rule for e in ledger.entries).items())),
        "taken_back": len(ledger.rejected),
        "proved": ledger.whole is not None and ledger.whole.passed is True,
    }
