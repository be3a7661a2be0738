"""What the HTML page shows, gathered from the report and the files beside its subject, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtconv.check.blame.origins import graph_of
from trtconv.check.reporters.caveats import missed_lines, power_line
from trtconv.check.reporters.headline import ERROR_UNIT, headline
from trtconv.check.reporters.html.page_latency import latency_facts
from trtconv.check.reporters.html.page_networks import network_pair
from trtconv.check.reporters.html.page_precision import precision_facts
from trtconv.check.reporters.html.page_rewrites import rejected_groups, rewrite_groups
from trtconv.check.reporters.html.page_tune import tune_facts, tune_verdict
from trtconv.check.reporters.html.svg_space import space_picture
from trtconv.check.reporters.problems import problems, worst_of
from trtconv.core.artifacts import beside, manifest_path, read_json
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.ledger.records import RewriteLedger
from trtconv.core.model.file import load_structure, signature
from trtconv.core.report import CheckReport, OutputComparison
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.sizes import format_bytes

MOST_LAYERS = 40
# What the page takes from a manifest; a field of another kind, in a file that somebody edited, is left out.
_KINDS = {"versions": dict}


def page_facts(report: CheckReport) -> dict[str, Any]:
    """Everything that the template uses."""
    import trtconv

    subject = Path(report.subject)
    ledger = _ledger(subject)
    cells = {(c.output, c.point): _cell(c, allowed_of(report, c.output)) for c in report.comparisons}
    worst = _worst(report)
    return {
        "report": report,
        "error_unit": ERROR_UNIT,
        "worst": worst,
        "allowed": allowed_of(report, worst.output) if worst else 0.0,
        "version": trtconv.__version__,
        "verdict": _verdict(report),
        "points": list(dict.fromkeys(c.point for c in report.comparisons)),
        "outputs": list(dict.fromkeys(c.output for c in report.comparisons)),
        "cells": cells,
        "advisory": [(c.output, c.point, c.passed, c.max_abs) for c in report.advisory],
        "problems": problems(report),
        "power": report.extras.get("power", {}),
        "power_line": power_line(report),
        "missed": missed_lines(report),
        "tune": tune_facts(report.extras.get("tune", {})),
        "budgets": report.extras.get("budgets", []),
        "pipeline": _pipeline(report, subject, ledger),
        "space": space_picture(_space(subject), report),
        "heat": _heat(report),
        "rewrites": rewrite_groups(ledger.entries if ledger else ()),
        "rejected": rejected_groups(ledger.rejected if ledger else ()),
        "networks": network_pair(subject, ledger.entries if ledger else ()),
        "latency": latency_facts(report),
        "precision": precision_facts(report),
        "layers": _layers(report),
        "environment": _environment(report, subject),
    }


# Of a magnitude, where nothing was compared and no limit is named.
USUAL = 1e-5


def allowed_of(report: CheckReport, output: str) -> float:
    """About the largest error of an element's scale that an output may have: a named limit, else as compared."""
    own = report.extras.get("tolerances", {}).get(output)
    limits = own or {"rtol": report.tolerance.rtol, "atol": report.tolerance.atol}
    named = max(limits["rtol"] or 0.0, limits["atol"] or 0.0)
    shares = [
        c.max_scaled / c.max_share
        for c in report.comparisons
        if c.output == output and c.max_scaled and c.max_share and c.max_scaled < math.inf
    ]
    return named or max(shares, default=USUAL)


def _worst(report: CheckReport) -> OutputComparison | None:
    """The comparison with the largest error measured as the tolerance measures, for the numbers at the top."""
    measurable = [c for c in report.comparisons if c.max_scaled is not None]
    return worst_of(tuple(measurable)) if measurable else None


def _verdict(report: CheckReport) -> dict[str, str]:
    if "tune" in report.extras:
        return tune_verdict(report.extras["tune"])
    head = headline(report)
    return {"state": head.state, "word": head.word.capitalize(), "text": head.text}


def _cell(comparison: Any, tolerance: float) -> dict[str, Any]:
    """`level` 0 to 5 is the error on a logarithmic scale from 1e-8 to the tolerance; 6 fails."""
    value = comparison.max_scaled
    allowed = max(tolerance, 1e-12)
    if not comparison.passed:
        level = 6
    elif not value or value <= 1e-8:
        level = 0
    else:
        share = (math.log10(value) + 8.0) / max(0.1, math.log10(allowed) + 8.0)
        level = 1 + min(4, max(0, int(share * 5)))
    text = "shape" if value is None else "0" if value == 0 else f"{value:.1e}"
    title = comparison.reason or f"max abs {comparison.max_abs:.3g}, cosine {comparison.cosine:.7f}"
    if comparison.max_abs is not None and comparison.at:
        title += f"; largest at {list(comparison.at)}: {comparison.expected_at:.6g} / {comparison.actual_at:.6g}"
    return {"level": level, "text": text, "title": title, "allowed": _allowed_text(comparison)}


def _allowed_text(comparison: Any) -> str:
    """`8 % of 3.7e-06`: the largest share of what is allowed, and what is allowed at the median element."""
    share, allowed = comparison.max_share, comparison.allowed
    if share is None or allowed is None or not math.isfinite(share):
        return ""
    percent = f"{100 * share:.0f} %" if share >= 0.01 or not share else "<1 %"
    return f"{percent} of {allowed:.1e}"


def _space(subject: Path) -> ShapeSpace:
    graph = graph_of(subject)
    try:
        return signature(load_structure(graph)).space if graph else ShapeSpace()
    except TrtconvError:
        return ShapeSpace()


def _json(path: Path) -> Mapping[str, Any]:
    try:
        data = read_json(path) if path.exists() else {}
    except TrtconvError:
        return {}
    return {k: v for k, v in data.items() if isinstance(v, _KINDS.get(k, object))}


def _ledger(subject: Path) -> RewriteLedger | None:
    """The ledger beside the subject; None for one that was edited, which the check has said."""
    try:
        path = beside(subject, ".rewrites.json")
        return read_ledger(path) if path.exists() else None
    except TrtconvError:
        return None


def _pipeline(report: CheckReport, subject: Path, ledger: RewriteLedger | None) -> list[dict[str, str]]:
    """One entry per room: the file, its size, the time, a remark. Rooms whose files are missing are left out."""
    steps = []
    exported = subject.with_name(beside(subject, ".onnx").name)
    manifest = _json(manifest_path(exported))
    if exported.exists():
        remark = f"{manifest['exporter']}, opset {manifest['opset']}" if {"exporter", "opset"} <= set(manifest) else ""
        steps.append(_step("export", exported, 0.0, remark))
    rewritten = subject.with_name(beside(subject, ".trt.onnx").name)
    if rewritten.exists():
        steps.append(_step("rewrite", rewritten, 0.0, _rewritten_remark(ledger) if ledger else ""))
    engine = subject if report.subject_kind == "engine" else subject.with_name(beside(subject, ".engine").name)
    built = _json(manifest_path(engine))
    if engine.exists():
        remark = f"{built.get('backend', '')} {built.get('version', '')}, {built.get('precision', '')}" if built else ""
        steps.append(_step("build", engine, float(built.get("seconds", 0.0)), remark))
    checked = "nodes only" if report.static else f"{len(report.comparisons)} comparisons"
    steps.append(
        {
            "name": "check",
            "file": subject.name,
            "size": checked,
            "time": f"{report.seconds:.1f} s",
            "remark": report.runner,
        }
    )
    return steps


def _rewritten_remark(ledger: RewriteLedger) -> str:
    count = len(ledger.entries)
    return f"{count} rewrite{'s' * (count != 1)}, {ledger.nodes[0]} to {ledger.nodes[1]} nodes"


def _step(name: str, path: Path, seconds: float, remark: str) -> dict[str, str]:
    return {
        "name": name,
        "file": path.name,
        "size": format_bytes(path.stat().st_size),
        "time": f"{seconds:.1f} s" if seconds else "",
        "remark": remark,
    }


def _heat(report: CheckReport) -> list[dict[str, Any]]:
    """Modules with a bar whose width (0 to 100) is the error on a logarithmic scale from 1e-9 to 1."""
    rows = []
    allowed = max(report.tolerance.rtol or 0.0, report.tolerance.atol or 0.0) or USUAL
    for entry in report.extras.get("heat", []):
        error = entry["error"]
        number = float(error) if not isinstance(error, str) else math.inf
        width = 0.0 if number == 0 else 100.0 if math.isinf(number) else (math.log10(max(number, 1e-9)) + 9) / 9 * 100
        rows.append(
            {
                **entry,
                "width": round(min(100.0, max(1.0 if number else 0.0, width)), 1),
                "bad": number > allowed,
                "text": "0" if number == 0 else f"{number:.1e}" if math.isfinite(number) else "not finite",
            }
        )
    return rows


def _layers(report: CheckReport) -> list[dict[str, Any]]:
    """The slowest layers with their share of the whole (0 to 100); without times in the engine's order."""
    layers = list(report.extras.get("layers", []))
    total = sum(layer["seconds"] for layer in layers)
    rows = sorted(layers, key=lambda layer: -layer["seconds"])[:MOST_LAYERS]
    longest = max((layer["seconds"] for layer in rows), default=0.0)
    return [
        {
            **layer,
            "share": f"{100 * layer['seconds'] / total:.1f} %" if total else "",
            "width": round(100 * layer["seconds"] / longest, 1) if longest else 0,
            "time": f"{layer['seconds'] * 1e6:.1f} µs" if total else "",
        }
        for layer in rows
    ]


def _environment(report: CheckReport, subject: Path) -> list[tuple[str, str]]:
    rows = [("subject", report.subject), ("reference", report.reference), ("runner", report.runner)]
    allowed = str(report.tolerance)
    rows.append(("tolerance", allowed + (f" ({report.tolerance.why})" if report.tolerance.why else "")))
    rows += list(report.environment.items())
    manifest = _json(manifest_path(subject.with_name(beside(subject, ".onnx").name)))
    rows += [(f"{n} at export", str(v)) for n, v in sorted(manifest.get("versions", {}).items())]
    return [(n, v) for n, v in rows if v]
