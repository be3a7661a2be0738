"""The table of whole networks in docs/networks.md."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

from networks.registry import all_networks, package_names, requirements

STATUSES = ("equal", "refused", "stopped", "wrong", "crashed", "unavailable")
COLUMNS = (
    "network", "outcome", "seconds", "export", "rewrite", "peak MiB", "exporter, opset", "nodes", "rewrites",
    "RTX build", "8.6 rewrite",
)  # fmt: skip
INTRODUCTION = """\
# Whole networks

`make networks [FILTER=...]` converts networks of public packages with random weights and writes this page; the registry
is `networks/packages/`. Each network is exported, rewritten for TensorRT-RTX, compared with the module in ONNX Runtime
at sizes that no room looked at, built with TensorRT-RTX (no GPU is needed), and rewritten for TensorRT 8.6. `equal`
means that every room's proof and that comparison passed. That comparison is by the noise floor of its own runs, and by
a distance that knows nothing of the rooms: at most 1e-3 of an output's root mean square. Rows of near ties (two scores
that part by less than their rounding) may be another's if the module itself gives just those where it computes the same
otherwise: with another number of threads, beside its inputs and weights by one rounding unit, or in FP64
(`networks/judge.py`). How many there were stands beside the outcome.
`python -m networks.construct PACKAGE FILE.jsonl` makes each network and runs it once, in seconds.

How it was run:
- torch is the CPU build that `constraints.txt` pins; the packages are installed without their dependencies into
  `.venv-networks`, so that none brings another torch.
- torchvision's public wheels are built for CUDA, and their library of operators does not load beside a CPU torch.
  torchvision then computes in Python what it can; `networks/torchvision_operators.py` declares the one operator that
  its import needs. torchaudio lies in a folder of its own, since transformers and diffusers import it where they find
  it.
- Constructors start many parts at zero (heads, residual branches, layer scales), so that an untrained network computes
  a constant. `networks/weights.py` gives these parts values, and batch norms the statistics of a first input.
- Sizes are smaller than a user's and most transformers have two layers, so that a conversion takes a minute.
- Seconds are of one run on a shared machine with two cores, and only tell magnitudes.
"""


def write_page(outcomes: dict[str, dict[str, Any]], page: Path) -> None:
    """Write the page for the outcomes of networks that the registry has."""
    networks = all_networks()
    known_outcomes = {n: outcomes[n] for n in networks if n in outcomes}
    parts = [INTRODUCTION, _summary(known_outcomes, len(networks)), _refusals(known_outcomes)]
    parts += [_table(p, known_outcomes) for p in package_names()]
    temporary = page.with_name(f".{page.name}.tmp")
    temporary.write_text("\n".join(p for p in parts if p))
    temporary.replace(page)


def _summary(outcomes: dict[str, dict[str, Any]], registered: int) -> str:
    counts = Counter(o["status"] for o in outcomes.values())
    runnable = len(outcomes) - counts["unavailable"]
    build_count = sum(o.get("rtx") == "yes" for o in outcomes.values())
    old = sum(o.get("rewrite_8_6") == "yes" for o in outcomes.values())
    words = ", ".join(f"{counts[s]} {s}" for s in STATUSES if counts[s])
    return (
        f"\n{len(outcomes)} of {registered} registered networks were run: {words}. Of the others nothing is known. "
        f"{counts['equal']} of the {runnable} that could be made are converted and equal; {build_count} built with "
        f"TensorRT-RTX, {old} rewritten for TensorRT 8.6.\n"
    )


def _refusals(outcomes: dict[str, dict[str, Any]]) -> str:
    rows = [
        f"| {n} | {o['status']} | {_cell(o['message'], 420)} |"
        for n, o in outcomes.items()
        if o["status"] not in ("equal", "unavailable")
    ]
    return "\n".join(["## Not converted\n", "| network | outcome | why |", "|---|---|---|", *rows, ""]) if rows else ""


def _table(package: str, outcomes: dict[str, dict[str, Any]]) -> str:
    rows = [_row(n, o) for n, o in outcomes.items() if n.split("/")[0] == package]
    if not rows:
        return ""
    head = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    pins = ", ".join(r for r in requirements(package) if "==" in r)
    return "\n".join([f"## {package}\n", f"With {pins}.\n" if pins else "", *head, *rows, ""])


def _row(name: str, outcome: dict[str, Any]) -> str:
    seconds = outcome["seconds"]
    rules = ", ".join(f"{rule} {count}" if count > 1 else rule for rule, count in outcome.get("rewrites", {}).items())
    exporter = f"{outcome['exporter']}, {outcome['opset']}" if outcome.get("opset") else outcome.get("exporter", "")
    flips = outcome.get("own_flips", 0)
    own = f" ({flips} rows as the module gives them itself in another run)" if flips else ""
    idle = f" (proves nothing: {', '.join(outcome['idle_outputs'][:3])})" if outcome.get("idle_outputs") else ""
    cells = [
        name.split("/")[1], outcome["status"] + idle + own, f"{sum(seconds.values()):.0f}", _seconds(seconds, "export"),
        _seconds(seconds, "rewrite"), str(outcome.get("peak_mib") or ""), exporter, str(outcome.get("nodes") or ""),
        rules, _cell(outcome.get("rtx", ""), 120), _cell(outcome.get("rewrite_8_6", ""), 120),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def _seconds(seconds: dict[str, float], stage: str) -> str:
    return f"{seconds[stage]:.0f}" if stage in seconds else ""


def _cell(text: str, longest: int) -> str:
    return " ".join(text.split()).replace("|", "/")[:longest]
