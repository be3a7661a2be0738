"""Limits on what a converted model may cost: `[check.budgets]` of trtconv.toml."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trtconv.check.gate.measured import LATENCY, Measurement, format_value
from trtconv.core.errors import InvalidRequestError, did_you_mean
from trtconv.core.report import Finding
from trtconv.core.sizes import parse_bytes
from trtconv.core.text.numbers import parse_number

DEFAULT_POINT = "opt"


@dataclass(frozen=True)
class Budgets:
    """The limits; None means no limit.

    `latency_ms` are (sample point, milliseconds). `precision_share` is the least share, 0 to 1, of the engine's
    float layers that have the asked precision (of the network's float tensors where the engine cannot run); all others
    are the most that is allowed.
    """

    latency_ms: tuple[tuple[str, float], ...] = ()
    engine_bytes: int | None = None
    device_memory_bytes: int | None = None
    build_seconds: float | None = None
    unsupported_nodes: int | None = None
    plugin_nodes: int | None = None
    precision_share: float | None = None

    def limits(self) -> tuple[tuple[str, float, bool], ...]:
        """(name of the measurement, bound, True when the bound is the least that is allowed)."""
        bounds = [(f"{LATENCY}{point}", ms, False) for point, ms in self.latency_ms]
        for name in ("engine_bytes", "device_memory_bytes", "build_seconds", "unsupported_nodes", "plugin_nodes"):
            if getattr(self, name) is not None:
                bounds.append((name, float(getattr(self, name)), False))
        if self.precision_share is not None:
            bounds.append(("precision_share", self.precision_share, True))
        return tuple(bounds)


NO_BUDGETS = Budgets()


def parse_budgets(data: Mapping[str, Any]) -> Budgets:
    """Read the table of the config. Sizes may be text (`"64MiB"`); `latency_ms` is a number, which holds at opt, or a
    table by sample point. Raises InvalidRequestError for an unknown name or an invalid limit."""
    options = list(Budgets.__dataclass_fields__)
    for name in data:
        if name not in options:
            raise InvalidRequestError(
                f"[check.budgets] has no budget '{name}'{did_you_mean(name, options)}",
                hint="one of " + ", ".join(options),
            )
    values: dict[str, Any] = {}
    for name, value in data.items():
        if name == "latency_ms":
            table = value if isinstance(value, Mapping) else {DEFAULT_POINT: value}
            values[name] = tuple((str(p), _number(f"latency_ms.{p}", v)) for p, v in table.items())
        elif name.endswith("_bytes"):
            values[name] = parse_bytes(value) if isinstance(value, str) else int(_number(name, value))
        elif name.endswith("_nodes"):
            values[name] = int(_number(name, value))
        else:
            values[name] = _number(name, value)
    if not 0.0 <= (values.get("precision_share") or 0.0) <= 1.0:
        raise InvalidRequestError("[check.budgets] precision_share is a share between 0 and 1")
    return Budgets(**values)


def _number(name: str, value: Any) -> float:
    if not isinstance(value, (int, float)):
        value = math.nan
    return parse_number(value, f"[check.budgets] {name}", 0.0, math.inf)


def judge_budgets(
    budgets: Budgets,
    measured: Mapping[str, Measurement],
    missing: Mapping[str, str],
    *,
    unmeasured_is_error: bool = True,
) -> tuple[tuple[Finding, ...], list[dict[str, Any]]]:
    """Findings for what is over its limit or could not be measured, and a row per limit for the reports.

    `missing` says why a measurement could not be made; the limit is then reported, not silently passed.
    """
    findings: list[Finding] = []
    rows: list[dict[str, Any]] = []
    for name, bound, least in budgets.limits():
        limit = ("at least " if least else "at most ") + format_value(name, bound)
        measurement = measured.get(name)
        if measurement is None:
            why = missing.get(name, "it was not measured")
            level = "error" if unmeasured_is_error else "note"
            findings.append(Finding(level, "environment", f"the budget {name} ({limit}) could not be judged: {why}"))
            rows.append(_row(name, "not measured", limit, not unmeasured_is_error, None, bound))
            continue
        passed = measurement.value >= bound if least else measurement.value <= bound
        value_text = format_value(name, measurement.value)
        rows.append(_row(name, value_text, limit, passed, measurement.value, bound))
        if not passed:
            findings.append(_over(name, value_text, limit, measurement))
    return tuple(findings), rows


def _row(
    name: str, measured: str, limit: str, passed: bool, value: float | None, bound: float | None
) -> dict[str, Any]:
    return {"name": name, "measured": measured, "limit": limit, "passed": passed, "value": value, "bound": bound}


def _over(name: str, value_text: str, limit: str, measurement: Measurement) -> Finding:
    first = measurement.places[0] if measurement.places else {}
    more = f" (the first is '{first['node']}')" if first else ""
    return Finding(
        "error",
        "budget",
        f"{name} is {value_text}, allowed is {limit}{more}",
        _HINTS.get(name.split(" ")[0], ""),
        first.get("node", ""),
        first.get("module", ""),
        first.get("source", ""),
    )


_HINTS: Mapping[str, str] = {
    "latency_ms": "`trtconv bench` shows where the time goes",
    "engine_bytes": "`--precision fp16` halves the weights",
    "device_memory_bytes": "a smaller max in the profile, or --workspace, lowers it",
    "build_seconds": "a timing cache (--timing-cache) and a lower --opt-level shorten builds",
    "plugin_nodes": "`trtconv rewrite --plugins never` keeps to native nodes",
    "precision_share": "`trtconv inspect --layers` shows the type of each layer",
}
