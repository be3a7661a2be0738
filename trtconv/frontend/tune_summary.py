"""What `trtconv tune` says, as lines for a person and data for a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.frontend.summary import Summary

if TYPE_CHECKING:
    from trtconv.tune.room import TuneResult


def tune_summary(result: TuneResult) -> Summary:
    """Of `trtconv tune`: what was chosen, the contract, the speed, and what was left out."""
    facts, chosen = result.facts, result.facts["chosen"]
    metric, fp32 = facts["contract"]["metric"], facts["baseline"]
    shares = ", ".join(f"{100 * share:.0f}% {name}" for name, share in chosen["shares"].items())
    lines = [
        ("chosen", f"{chosen['name']}: layers with weights {shares or 'none'}"),
        (
            "contract",
            f"{metric} {facts['shipped']['judging']:.4f}, fp32 {fp32['judging']:.4f}: a drop of "
            f"{chosen['drop']:.4f} ± {chosen['scatter']:.4f}, at most {facts['contract']['max_drop']}",
        ),
        ("judged on", f"{facts['data']['parts']['judging']} samples that the search never saw"),
        ("speed", _speed(chosen, fp32, facts["speed"])),
    ]
    left_out = [s for s in facts["sensitivities"] if s["precision"] == chosen["precision"]]
    left_out = sorted((s for s in left_out if s["group"] not in chosen["groups"]), key=lambda s: float(s["decibels"]))
    lines += [("left out", f"{s['group']}: {s['decibels']:.0f} dB alone") for s in left_out[:5]]
    if not facts["complete"]:
        lines.append(("note", "the budget ended the search; a larger set may keep the contract"))
    lines.append(("files", f"{result.folder}/: " + ", ".join(p.name for p in result.files)))
    data = {name: value for name, value in facts.items() if name != "schema"}
    return Summary("tune", tuple(lines), {**data, "files": list(result.files), "notes": list(result.notes)})


def _speed(chosen: dict[str, object], fp32: dict[str, object], text: str) -> str:
    ours, theirs = chosen["seconds"], fp32["seconds"]
    if not isinstance(ours, float) or not isinstance(theirs, float):
        return text
    return f"{1e3 * ours:.3g} ms, fp32 {1e3 * theirs:.3g} ms: {theirs / ours:.2f} times as fast"
