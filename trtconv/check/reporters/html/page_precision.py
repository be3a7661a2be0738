"""Which layer runs in which precision, for the page: of the engine where it ran, else of the graph it is built from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from trtconv.check.blame.origins import graph_of
from trtconv.check.reporters.html.network.data import ENDS, graph_of_model
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_structure
from trtconv.core.precision import BF16, FP8, FP16, FP32, INT8
from trtconv.core.report import CheckReport
from trtconv.core.text.listing import list_first

# In the order of the legend; what is no number to compute with (indices, masks) comes last.
KINDS = (FP32.dtype, FP16.dtype, BF16.dtype, FP8.name, INT8.dtype, "int4", "other")
_KIND_OF = {"float64": FP32.dtype, "uint8": INT8.dtype, **{p.name: p.dtype for p in (FP32, FP16, BF16)}}
MOST_MODULES = 40


@dataclass(frozen=True)
class _Step:
    name: str
    module: str
    op: str
    kind: str
    weight: float


def precision_facts(report: CheckReport) -> dict[str, Any]:
    """`map` (a picture), `shares` by precision, `modules` with their counts; empty where all is FP32 or unknown."""
    steps, source = _steps(report)
    kinds = [kind for kind in KINDS if any(step.kind == kind for step in steps)]
    if not steps or kinds in (["float32"], ["float32", "other"], ["other"]):
        return {}
    total = sum(step.weight for step in steps) or 1.0
    timed = source == "engine" and any(step.weight != 1.0 for step in steps)
    return {
        "source": source,
        "timed": timed,
        "picture": _picture(steps, total),
        "shares": [(kind, sum(s.kind == kind for s in steps), _percent(steps, kind, total)) for kind in kinds],
        "kinds": kinds,
        "modules": _modules(steps, kinds),
    }


def _steps(report: CheckReport) -> tuple[list[_Step], str]:
    layers: Sequence[Mapping[str, Any]] = report.extras.get("layers", ())
    if layers:
        timed = any(layer["seconds"] for layer in layers)
        return [
            _Step(layer["name"], "", layer["kind"], _kind(layer["dtype"]), layer["seconds"] if timed else 1.0)
            for layer in layers
        ], "engine"
    path = graph_of(Path(report.subject))
    try:
        nodes = graph_of_model(load_structure(path), path).nodes if path is not None else ()
    except TrtconvError:
        return [], ""
    return [
        _Step(node.name, dict(node.facts).get("module", ""), node.op, _kind(node.dtype), 1.0)
        for node in nodes
        if node.op not in ENDS
    ], "graph"


def _kind(dtype: str) -> str:
    word = dtype.lower()
    word = FP8.name if "float8" in word or word.startswith(FP8.name) else _KIND_OF.get(word, word)
    return word if word in KINDS else "other"


def _percent(steps: Iterable[_Step], kind: str, total: float) -> str:
    return f"{100 * sum(s.weight for s in steps if s.kind == kind) / total:.0f} %"


def _picture(steps: Sequence[_Step], total: float) -> str:
    """A band from the first layer to the last, each as wide as its share; neighbours of one precision are one box."""
    parts, at = [], 0.0
    for run in _runs(steps):
        width = sum(step.weight for step in run) / total * 1000
        title = f"{run[0].kind}: {list_first([step.name or step.op for step in run])}"
        parts.append(
            f'<g><title>{escape(title)}</title><rect class="p-{run[0].kind}" x="{at:.2f}" y="0" '
            f'width="{max(width, 0.5):.2f}" height="40"/></g>'
        )
        at += width
    words = f"precision of {len(steps)} layers from the first to the last"
    return (
        f'<svg class="band" viewBox="0 0 1000 40" preserveAspectRatio="none" role="img" aria-label="{words}">'
        f"{''.join(parts)}</svg>"
    )


def _runs(steps: Sequence[_Step]) -> list[list[_Step]]:
    runs: list[list[_Step]] = []
    for step in steps:
        if runs and runs[-1][0].kind == step.kind:
            runs[-1].append(step)
        else:
            runs.append([step])
    return runs


def _modules(steps: Sequence[_Step], kinds: Sequence[str]) -> list[tuple[str, list[int]]]:
    """The modules of the network with how many of their layers run in which precision, mixed and low ones first."""
    counts: dict[str, Counter[str]] = {}
    for step in steps:
        if step.module:
            counts.setdefault(step.module, Counter())[step.kind] += 1
    rows = [(module, [count[kind] for kind in kinds]) for module, count in counts.items()]
    return rows[:MOST_MODULES]
