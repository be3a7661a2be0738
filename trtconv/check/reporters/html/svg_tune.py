"""The pictures of a search: accuracy over latency with every candidate, and how sensitive each module is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 620, 300, 74, 24, 16, 52
_ROW, _NAME, _VALUE = 22, 250, 120
# Decibels at which a bar is full, and empty: 0 dB is noise as large as the signal.
_WORST, _BEST = 0.0, 80.0
MOST_BARS = 40


@dataclass(frozen=True)
class Spot:
    """A candidate: what it costs (seconds or bytes), what it reaches, and how it is drawn."""

    name: str
    cost: float
    value: float
    state: str


def pareto_picture(facts: Mapping[str, Any]) -> str:
    """Every judged candidate and FP32; the line joins those that no other one beats in both. Empty without any."""
    timed = facts["baseline"].get("seconds") is not None
    spots = [_spot(facts["baseline"], timed, "neutral")]
    chosen = facts["chosen"]["name"]
    for item in facts["judged"]:
        if not item.get("failure"):
            state = "chosen" if item["name"] == chosen and item["holds"] else "good" if item["holds"] else "bad"
            spots.append(_spot(item, timed, state))
    if len(spots) < 2:
        return ""
    lowest = float(facts["contract"]["lowest"])
    costs, values = [s.cost for s in spots], [*(s.value for s in spots), lowest]
    across, up = _axis(0.0, max(costs)), _axis(min(values), max(values))
    x = [_LEFT + (c - across[0]) / (across[1] - across[0]) * (_WIDTH - _LEFT - _RIGHT) for c in costs]
    y = [_height(s.value, up) for s in spots]
    parts = [
        f'<rect x="{_LEFT}" y="{_TOP}" width="{_WIDTH - _LEFT - _RIGHT}" '
        f'height="{_HEIGHT - _TOP - _BOTTOM}" class="area"/>',
        f'<path class="limit" d="M{_LEFT} {_height(lowest, up):.1f}H{_WIDTH - _RIGHT}"/>',
        f'<text x="{_WIDTH - _RIGHT - 4}" y="{_height(lowest, up) - 5:.1f}" class="number end">contract</text>',
        _front(spots, x, y),
        *_ticks(across, up, timed),
        f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{_HEIGHT - 8}" class="axis">'
        f"{'latency in ms' if timed else 'bytes that layers move, fp32 = 1 (speed is not known)'}</text>",
        f'<text x="14" y="{_HEIGHT / 2}" class="axis" transform="rotate(-90 14 {_HEIGHT / 2})">'
        f"{escape(str(facts['contract']['metric']))}</text>",
    ]
    for spot, left, top in zip(spots, x, y, strict=True):
        radius = 8 if spot.state == "chosen" else 5
        parts.append(
            f"<g><title>{escape(spot.name)}: {spot.value:.4g}</title>"
            f'<circle cx="{left:.1f}" cy="{top:.1f}" r="{radius}" class="dot {spot.state}"/></g>'
        )
    return (
        f'<svg class="space pareto" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" '
        f'aria-label="{len(spots)} candidates by cost and metric">{"".join(parts)}</svg>'
    )


def _spot(item: Mapping[str, Any], timed: bool, state: str) -> Spot:
    cost = 1e3 * float(item.get("seconds") or 0.0) if timed else float(item["cost"])
    return Spot(str(item["name"]), cost, float(item["judging"]), state)


def _axis(low: float, high: float) -> tuple[float, float]:
    room = max((high - low) * 0.12, abs(high) * 1e-3, 1e-9)
    return (low if low == 0.0 else low - room), high + room


def _height(value: float, up: tuple[float, float]) -> float:
    share = (max(value, up[0]) - up[0]) / (up[1] - up[0])
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _front(spots: Sequence[Spot], x: Sequence[float], y: Sequence[float]) -> str:
    best, points = -float("inf"), []
    for index in sorted(range(len(spots)), key=lambda i: (spots[i].cost, -spots[i].value)):
        if spots[index].value > best:
            best = spots[index].value
            points.append(f"{x[index]:.1f} {y[index]:.1f}")
    return f'<path class="front" d="M{"L".join(points)}"/>'


def _ticks(across: tuple[float, float], up: tuple[float, float], timed: bool) -> list[str]:
    parts = []
    for share in (0.0, 0.5, 1.0):
        cost, value = across[0] + share * (across[1] - across[0]), up[0] + share * (up[1] - up[0])
        left = _LEFT + share * (_WIDTH - _LEFT - _RIGHT)
        text = f"{cost:.3g}" if timed else f"{cost / across[1] * 1.12:.2g}"
        parts.append(f'<text x="{left:.1f}" y="{_HEIGHT - _BOTTOM + 18}" class="number">{text}</text>')
        parts.append(f'<text x="{_LEFT - 8}" y="{_height(value, up) + 4:.1f}" class="number end">{value:.4g}</text>')
    return parts


def sensitivity_picture(facts: Mapping[str, Any], precision: str) -> str:
    """A bar for each module: the longer it is, the more noise the module alone makes in that precision."""
    rows = [s for s in facts["sensitivities"] if s["precision"] == precision]
    rows = sorted(rows, key=lambda s: float(s["decibels"]))[:MOST_BARS]
    if not rows:
        return ""
    chosen = set(facts["chosen"]["groups"]) if facts["chosen"]["precision"] == precision else set()
    reference, parts = float(facts["baseline"]["search"]), []
    track = _WIDTH - _NAME - _VALUE
    for number, row in enumerate(rows):
        top = number * _ROW
        share = min(1.0, max(0.01, (_BEST - float(row["decibels"])) / (_BEST - _WORST)))
        drop = reference - float(row["value"])
        state = "low" if row["group"] in chosen else "high"
        title = f"{row['group']}: {row['nodes']} nodes, {row['decibels']:.1f} dB, the metric drops by {drop:.4g}"
        parts.append(
            f"<g><title>{escape(title)}</title>"
            f'<text x="{_NAME - 10}" y="{top + 15}" class="number end">{escape(_short(str(row["group"])))}</text>'
            f'<rect x="{_NAME}" y="{top + 4}" width="{track * share:.1f}" height="{_ROW - 8}" rx="3" class="{state}"/>'
            f'<text x="{_WIDTH - 2}" y="{top + 15}" class="number end">{row["decibels"]:.0f} dB, {drop:+.3g}</text></g>'
        )
    return (
        f'<svg class="space sensitivity" viewBox="0 0 {_WIDTH} {len(rows) * _ROW + 4}" role="img" '
        f'aria-label="sensitivity of {len(rows)} modules in {escape(precision)}">{"".join(parts)}</svg>'
    )


def _short(name: str) -> str:
    return name if len(name) <= 34 else "…" + name[-33:]
