"""What the page says of a search for a precision, from the evidence in the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from trtconv.check.reporters.html.svg_tune import pareto_picture, sensitivity_picture


def tune_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    """The pictures and the table of candidates; empty for a report without a search."""
    if not facts:
        return {}
    precisions = list(dict.fromkeys(str(s["precision"]) for s in facts["sensitivities"]))
    rows = [facts["baseline"], *facts["judged"]]
    return {
        "pareto": pareto_picture(facts),
        "bars": {name: sensitivity_picture(facts, name) for name in precisions},
        "rows": [_row(r, facts) for r in rows],
        "metric": facts["contract"]["metric"],
        "speed": facts["speed"],
        "noise": facts["noise_floor_db"],
        "parts": ", ".join(f"{count} {name}" for name, count in facts["data"]["parts"].items()),
        "shares": ", ".join(f"{100 * share:.0f}% {name}" for name, share in facts["chosen"]["shares"].items()),
    }


def _row(item: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    seconds = item.get("seconds")
    return {
        "name": item["name"],
        "value": f"{item['judging']:.4f}",
        "drop": f"{item['drop']:+.4f} ± {item['scatter']:.4f}",
        "time": f"{1e3 * seconds:.3g} ms" if seconds is not None else "not known",
        "holds": bool(item["holds"]),
        "chosen": item["name"] == facts["chosen"]["name"] and item["groups"] == facts["chosen"]["groups"],
    }


def tune_verdict(facts: Mapping[str, Any]) -> dict[str, str]:
    """The head of the page."""
    chosen, contract = facts["chosen"], facts["contract"]
    text = (
        f"keeps {contract['metric']} at {chosen['judging']:.4f} (fp32 {facts['baseline']['judging']:.4f}, at most "
        f"{contract['max_drop']} below): {chosen['name']}"
    )
    timed = chosen["seconds"] is not None
    return {
        "state": "good" if timed else "open",
        "word": "Contract kept",
        "text": text if timed else f"{text}; the speed is not known",
    }
