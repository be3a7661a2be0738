"""Pictures of latencies: a range with its percentiles, a strip of processes, a history."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from html import escape

_WIDTH, _LEFT, _RIGHT = 560, 96, 70
_ROW = 30


def range_picture(least: float, median: float, p90: float, p99: float) -> str:
    """A bar up to the median and a line over p90 to p99, as shares of the longest p99 of the table (0 to 1)."""
    x = [round(100 * share, 1) for share in (least, median, p90, p99)]
    return (
        '<svg class="range" viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="low" x="0" y="2" width="{x[1]}" height="8"/><path class="whisker" d="M{x[1]} 6H{x[3]}"/>'
        f'<path class="whisker" d="M{x[2]} 3v6M{x[3]} 1v10"/></svg>'
    )


def strip_picture(samples: Mapping[str, Sequence[float]]) -> str:
    """A row of dots for each sample (milliseconds, a dot for each process) with a line at its median."""
    values = [value for sample in samples.values() for value in sample]
    low, high = min(values), max(values)
    height = _ROW * len(samples) + 26
    parts = [_axis(low, high, height - 20)]
    for row, (name, sample) in enumerate(samples.items()):
        y = _ROW * row + 16
        middle = _x(statistics.median(sample), low, high)
        parts.append(f'<text x="8" y="{y + 4}" class="axis start">{escape(name)}</text>')
        parts.append(f'<path class="median" d="M{middle:.1f} {y - 9}v18"/>')
        parts += [f'<circle class="dot neutral" cx="{_x(v, low, high):.1f}" cy="{y}" r="4.5"/>' for v in sample]
    words = "; ".join(f"{name} {statistics.median(sample):.3g} ms" for name, sample in samples.items())
    return _svg(height, f"medians of the processes: {words}", parts)


def history_picture(series: Sequence[tuple[str, float]]) -> str:
    """A line through (label, milliseconds), from zero, the last one marked."""
    top, bottom, most = 12, 120, max(value for _, value in series)
    step = (_WIDTH - _LEFT - _RIGHT) / max(1, len(series) - 1)
    spots = [
        (_LEFT + step * i, bottom - (bottom - top) * (value / most if most else 0.0))
        for i, (_, value) in enumerate(series)
    ]
    line = "L".join(f"{x:.1f} {y:.1f}" for x, y in spots)
    dots = [
        f"<g><title>{escape(label)}: {value:.3g} ms</title>"
        f'<circle class="dot {kind}" cx="{x:.1f}" cy="{y:.1f}" r="5"/></g>'
        for (label, value), (x, y), kind in zip(
            series, spots, ["neutral"] * (len(series) - 1) + ["chosen"], strict=True
        )
    ]
    parts = [
        f'<path class="rail" d="M{_LEFT} {bottom}H{_WIDTH - _RIGHT}"/><path class="front" d="M{line}"/>',
        *dots,
        f'<text x="{_LEFT - 8}" y="{bottom + 4}" class="end">0</text>',
        f'<text x="{_LEFT - 8}" y="{top + 4}" class="end">{most:.3g} ms</text>',
        f'<text x="{_LEFT}" y="{bottom + 20}" class="start">{escape(series[0][0])}</text>',
        f'<text x="{_WIDTH - _RIGHT}" y="{bottom + 20}" class="end">{escape(series[-1][0])}</text>',
    ]
    words = f"{len(series) - 1} baselines, from {series[0][1]:.3g} to {series[-1][1]:.3g} ms"
    return _svg(bottom + 30, words, parts)


def _x(value: float, low: float, high: float) -> float:
    return _LEFT + (value - low) / ((high - low) or 1.0) * (_WIDTH - _LEFT - _RIGHT)


def _axis(low: float, high: float, y: float) -> str:
    ends = f'<text x="{_LEFT}" y="{y + 14}" class="number">{low:.3g} ms</text>'
    if high > low:
        ends += f'<text x="{_WIDTH - _RIGHT}" y="{y + 14}" class="number">{high:.3g} ms</text>'
    return f'<path class="tick" d="M{_LEFT} {y - 2}H{_WIDTH - _RIGHT}"/>{ends}'


def _svg(height: float, words: str, parts: Sequence[str]) -> str:
    return (
        f'<svg class="space" viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="{escape(words)}">'
        f"{''.join(parts)}</svg>"
    )
