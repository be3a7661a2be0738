"""`--baseline FILE`: an earlier JSON report beside this one, in ratios, with a margin that comes from the spread.

A quantity got worse when its median grew by more than its ratio allows and its runs lie above the earlier ones by an
exact rank test. The first keeps small changes green, the second keeps a noisy machine green.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.check.gate.measured import Measurement, format_value, from_dict
from trtconv.check.gate.rank_test import p_value_of_larger
from trtconv.core.artifacts import read_json
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.report import SCHEMA, CheckReport, Finding
from trtconv.core.text.numbers import parse_number

# How often two samples of one distribution may be told apart. Few runs cannot reach it: they must lie wholly apart.
SIGNIFICANCE = 1e-3
AGAINST = " against the baseline"
# Of a limit that a user named the same goes for this share.
_NAMED_SHARE = 0.02
# Errors below this share of an output's magnitude are rounding; they may move by any factor.
ERROR_FLOOR = 2e-6
RATIOS: Mapping[str, float] = {
    "latency_ms": 1.10,
    "engine_bytes": 1.10,
    "device_memory_bytes": 1.10,
    "build_seconds": 2.0,
    "unsupported_nodes": 1.0,
    "plugin_nodes": 1.0,
    "precision_share": 1.05,
    "error": 10.0,
}


@dataclass(frozen=True)
class Baseline:
    """An earlier report: its measurements, the largest error per output, and the machine that measured.

    `history` are the baselines that were written to the same file before it and itself, the oldest first.
    """

    measured: Mapping[str, Measurement]
    errors: Mapping[str, float]
    environment: Mapping[str, str]
    ratios: Mapping[str, float] = field(default_factory=lambda: RATIOS)
    history: tuple[Mapping[str, Any], ...] = ()


def parse_ratios(data: Mapping[str, Any]) -> Mapping[str, float]:
    """`[check.baseline]` laid over the defaults. Raises InvalidRequestError for an unknown name or a ratio under 1."""
    for name in data:
        if name not in RATIOS:
            raise InvalidRequestError(
                f"[check.baseline] has no ratio '{name}'{did_you_mean(name, RATIOS)}",
                hint="one of " + ", ".join(RATIOS),
            )
    ratios = {
        n: parse_number(v if isinstance(v, (int, float)) else math.nan, f"[check.baseline] {n}", 1.0, math.inf)
        for n, v in data.items()
    }
    return {**RATIOS, **ratios}


def read_baseline(path: Path, ratios: Mapping[str, float] = RATIOS) -> Baseline:
    """Read a JSON report. Raises InvalidRequestError for any other file."""
    data = read_json(path, "baseline", "make one with --update-baseline")
    if data.get("kind") != "check" or data.get("schema") != SCHEMA:
        raise InvalidRequestError(
            f"'{path}' is not a report of `trtconv check` with schema {SCHEMA}", hint="make one with --update-baseline"
        )
    try:
        measured = {n: from_dict(m) for n, m in data.get("extras", {}).get("measured", {}).items()}
        history = tuple(dict(entry) for entry in data.get("extras", {}).get("history", ()))
        return Baseline(measured, _errors_of(data["comparisons"]), dict(data.get("environment", {})), ratios, history)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidRequestError(
            f"the baseline '{path}' is damaged ({type(error).__name__}: {error})",
            hint="make one with --update-baseline",
        ) from error


def _errors_of(comparisons: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The largest error of each output in a report."""
    errors: dict[str, float] = {}
    for comparison in comparisons:
        value = comparison.get("max_scaled")
        if isinstance(value, (int, float)):
            errors[comparison["output"]] = max(errors.get(comparison["output"], 0.0), float(value))
    return errors


def compare_with_baseline(
    report: CheckReport, measured: Mapping[str, Measurement], baseline: Baseline
) -> tuple[tuple[Finding, ...], list[dict[str, Any]]]:
    """Findings for what got worse, and a row per quantity that both reports have."""
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    elsewhere = _other_machine(report.environment, baseline.environment)
    if elsewhere:
        findings.append(Finding("warning", "environment", f"times are not compared with the baseline: {elsewhere}"))
    for name, then in baseline.measured.items():
        now = measured.get(name)
        key = name.split(" ")[0]
        if now is None or (elsewhere and key in ("latency_ms", "build_seconds", "device_memory_bytes")):
            continue
        limit = baseline.ratios.get(key, 1.0)
        worse = is_regression(now, then, limit, more_is_better=key == "precision_share")
        sign = "/" if key == "precision_share" else "x"
        limits = f"{format_value(name, then.value)} {sign} {limit:g}"
        rows.append(_row(name + AGAINST, format_value(name, now.value), limits, not worse, now, then))
        if worse:
            findings.append(_worse(name, format_value(name, now.value), format_value(name, then.value), limit))
    return (*findings, *_errors(report, baseline, rows)), rows


def is_regression(now: Measurement, then: Measurement, ratio: float, *, more_is_better: bool = False) -> bool:
    """True when `now` is worse than `then` by more than the ratio, and the two are not one distribution's noise."""
    high, low = (then, now) if more_is_better else (now, then)
    if high.value <= low.value * ratio:
        return False
    high_runs, low_runs = high.runs or (high.value,), low.runs or (low.value,)
    least = 1.0 / math.comb(len(high_runs) + len(low_runs), len(high_runs))
    return p_value_of_larger(high_runs, low_runs) <= max(SIGNIFICANCE, least)


def _errors(report: CheckReport, baseline: Baseline, rows: list[dict[str, Any]]) -> list[Finding]:
    """An output that is still within its tolerance but far less exact than it was."""
    findings = []
    floor = max(ERROR_FLOOR, _NAMED_SHARE * max(report.tolerance.rtol or 0.0, report.tolerance.atol or 0.0))
    limit = baseline.ratios["error"]
    for name, then in baseline.errors.items():
        errors = [c.max_scaled for c in report.comparisons if c.output == name and c.max_scaled is not None]
        if not errors:
            continue
        now = max(errors)
        worse = now > max(then, floor) * limit
        limits = f"{max(then, floor):.2g} x {limit:g}"
        rows.append(
            {
                "name": f"error of {name}{AGAINST}",
                "measured": f"{now:.2g}",
                "limit": limits,
                "passed": not worse,
                "value": _finite(now),
                "bound": max(then, floor) * limit,
            }
        )
        if worse:
            findings.append(_worse(f"the error of output '{name}'", f"{now:.2g}", f"{then:.2g}", limit))
    return findings


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _row(name: str, shown: str, limit: str, passed: bool, now: Measurement, then: Measurement) -> dict[str, Any]:
    return {"name": name, "measured": shown, "limit": limit, "passed": passed, "value": now.value, "bound": then.value}


def _worse(name: str, now: str, then: str, ratio: float) -> Finding:
    return Finding(
        "error",
        "budget",
        f"{name} is {now}, in the baseline {then}; allowed is a ratio of {ratio:g}",
        "if that is meant, write a new baseline with --update-baseline",
    )


def _other_machine(now: Mapping[str, str], then: Mapping[str, str]) -> str:
    for name in ("gpu", "cpu"):
        if name in then and now.get(name) != then[name]:
            return f"it was recorded on {then[name]}, this is {now.get(name, f'a machine without a {name}')}"
    return ""
