"""What the ledger and the atlas keep of a job: a few numbers out of the files that its commands wrote."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import manifest_path
from trtconv.core.files.digest import sha256_file
from trtconv.core.precision import FP32
from trtconv.sweep.plan.commands import LATENCY, MODEL, REPORT, SUMMARY


def read_facts(kind: str, folder: Path) -> dict[str, Any]:
    """The facts of a job of this kind; empty for what it did not write."""
    if kind in ("check", "engine"):
        return _check_facts(_read(folder / REPORT))
    if kind == "tune":
        return _tune_facts(_read(folder / SUMMARY))
    if kind == "bench":
        return _bench_facts(_read(folder / LATENCY))
    summary = _read(folder / SUMMARY)
    names = {
        "export": ("exporter", "space"),
        "rewrite": ("rewrites", "rejected"),
        "type": ("rewrites", "rejected"),
        "build": ("backend", "version", "engine_bytes"),
    }[kind]
    return {name: summary[name] for name in names if name in summary}


def _check_facts(report: Mapping[str, Any]) -> dict[str, Any]:
    if not report:
        return {}
    comparisons = report.get("comparisons", [])
    findings = report.get("findings", [])
    errors = [c["max_scaled"] for c in comparisons if isinstance(c.get("max_scaled"), float)]
    shares = [c["max_share"] for c in comparisons if isinstance(c.get("max_share"), float)]
    failed = next((c for c in comparisons if not c.get("passed")), None)
    problem = next((f["message"] for f in findings if f.get("level") == "error"), "")
    if not problem and failed:
        problem = f"{failed.get('output')} at {failed.get('point')}: {failed.get('reason')}"
    return {
        "points": len({c.get("point") for c in comparisons}),
        "share": max(shares, default=None),
        "error": max(errors, default=None),
        "weak": any(f.get("kind") == "power" and f.get("level") == "warning" for f in findings),
        "problem": problem,
    }


def _tune_facts(summary: Mapping[str, Any]) -> dict[str, Any]:
    """What ships, how far it is below FP32 on the judging part, and whether the engine itself was judged and timed."""
    if not summary:
        return {}
    chosen, baseline, shipped = summary["chosen"], summary["baseline"], summary["shipped"]
    return {
        "metric": summary["contract"]["metric"],
        "max_drop": summary["contract"]["max_drop"],
        "chosen": chosen["name"],
        "precision": chosen["precision"],
        FP32.name: baseline["judging"],
        "value": shipped.get("engine_judging", shipped["judging"]),
        "engine": "engine_judging" in shipped,
        "seconds": chosen["seconds"],
        "fp32_seconds": baseline["seconds"],
        "complete": summary["complete"],
    }


def _bench_facts(report: Mapping[str, Any]) -> dict[str, Any]:
    """Median seconds on the device, by sample point, of the first subject measured there: the engine."""
    latencies: dict[str, float] = {}
    for entry in report.get("latencies", []):
        median = entry.get("device", {}).get("median")
        if isinstance(median, (int, float)):
            latencies.setdefault(str(entry.get("point")), float(median))
    return {"latency_s": latencies}


def read_sources(folder: Path, base: Path) -> dict[str, str]:
    """The files that an export read, as its manifest lists them: path (relative below `base`) -> SHA-256."""
    record = _read(manifest_path(folder / MODEL)).get("sources", {})
    sources = {}
    for group in ("files", "outside"):
        for name in record.get(group, {}):
            path = (folder / name).resolve()
            if path.is_file():
                near = path.is_relative_to(base.resolve())
                sources[str(path.relative_to(base.resolve()) if near else path)] = sha256_file(path)
    return sources


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
