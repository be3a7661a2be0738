"""The shape space as a picture: the two widest dims as a plane, every dim as a line, and the points on them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from html import escape

from trtconv.core.report import CheckReport
from trtconv.core.shape_space.space import DimRange, ShapeSpace

_SIZE = re.compile(r"(\w+)=(\d+)")
_WIDTH, _LEFT, _RIGHT = 560, 64, 22


@dataclass(frozen=True)
class Mark:
    """A sample point on the picture."""

    label: str
    sizes: dict[str, int]
    passed: bool


def space_picture(space: ShapeSpace, report: CheckReport) -> str:
    """An SVG; empty for a static model or when nothing was compared."""
    marks = _marks(report)
    dims = [(n, r) for n, r in space.dims if r.max > r.min]
    if not dims or not marks:
        return ""
    parts: list[str] = []
    top = 8
    if len(dims) > 1:
        wide = sorted(dims, key=lambda d: -(d[1].max - d[1].min))[:2]
        chosen = [d for d in dims if d in wide]
        parts.append(_plane(chosen[1], chosen[0], marks, top))
        top += 316
    for name, rng in dims:
        parts.append(_line(name, rng, marks, top))
        top += 46
    return (
        f'<svg class="space" viewBox="0 0 {_WIDTH} {top}" role="img" '
        f'aria-label="shape space with {len(marks)} sample points">{"".join(parts)}</svg>'
    )


def _marks(report: CheckReport) -> list[Mark]:
    marks = []
    for label in dict.fromkeys(c.point for c in report.comparisons):
        passed = all(c.passed for c in report.comparisons if c.point == label)
        marks.append(Mark(label, {n: int(v) for n, v in _SIZE.findall(label)}, passed))
    return marks


def _scale(rng: DimRange, value: int, low: float, high: float) -> float:
    return low + (value - rng.min) / max(1, rng.max - rng.min) * (high - low)


def _plane(across: tuple[str, DimRange], up: tuple[str, DimRange], marks: list[Mark], top: int) -> str:
    left, right, bottom, high = _LEFT, _WIDTH - _RIGHT, top + 260, top + 14
    parts = [
        f'<rect x="{left}" y="{high}" width="{right - left}" height="{bottom - high}" class="area"/>',
        *_ticks_across(across[1], left, right, bottom),
        *_ticks_up(up[1], high, bottom, left),
        f'<text x="{(left + right) / 2}" y="{bottom + 38}" class="axis">{escape(across[0])}</text>',
        f'<text x="14" y="{(high + bottom) / 2}" class="axis" '
        f'transform="rotate(-90 14 {(high + bottom) / 2})">{escape(up[0])}</text>',
    ]
    spots: dict[tuple[float, float], list[Mark]] = {}
    for mark in marks:
        if across[0] in mark.sizes and up[0] in mark.sizes:
            x = _scale(across[1], mark.sizes[across[0]], left, right)
            y = _scale(up[1], mark.sizes[up[0]], bottom, high)
            spots.setdefault((round(x, 1), round(y, 1)), []).append(mark)
    parts += [_dot(x, y, here) for (x, y), here in spots.items()]
    return "".join(parts)


def _dot(x: float, y: float, here: list[Mark]) -> str:
    state = "good" if all(m.passed for m in here) else "bad"
    names = "\n".join(m.label + ("" if m.passed else ": differs") for m in here)
    radius = (5 if state == "good" else 7) + min(3, len(here) - 1)
    cross = "" if state == "good" else (f'<path class="cross" d="M{x - 3} {y - 3}l6 6M{x + 3} {y - 3}l-6 6"/>')
    return f'<g><title>{escape(names)}</title><circle cx="{x}" cy="{y}" r="{radius}" class="dot {state}"/>{cross}</g>'


def _ticks_across(rng: DimRange, left: float, right: float, y: float) -> list[str]:
    parts = []
    for value in _tick_values(rng):
        x = _scale(rng, value, left, right)
        parts.append(f'<path class="tick" d="M{x:.1f} {y}v5"/>')
        parts.append(f'<text x="{x:.1f}" y="{y + 18}" class="number">{value}</text>')
    return parts


def _ticks_up(rng: DimRange, high: float, bottom: float, x: float) -> list[str]:
    parts = []
    for value in _tick_values(rng):
        y = _scale(rng, value, bottom, high)
        parts.append(f'<path class="tick" d="M{x} {y:.1f}h-5"/>')
        parts.append(f'<text x="{x - 9}" y="{y + 4:.1f}" class="number end">{value}</text>')
    return parts


def _tick_values(rng: DimRange) -> list[int]:
    """min, opt and max, without an opt whose number would lie on one of the others."""
    span = rng.max - rng.min
    near = min(rng.opt - rng.min, rng.max - rng.opt) < 0.08 * span
    return sorted({rng.min, rng.max} if near else {rng.min, rng.opt, rng.max})


def _line(name: str, rng: DimRange, marks: list[Mark], top: int) -> str:
    left, right, y = _LEFT, _WIDTH - _RIGHT, top + 14
    parts = [
        f'<text x="14" y="{y + 4}" class="axis start">{escape(name)}</text>',
        f'<path class="rail" d="M{left} {y}H{right}"/>',
        *_ticks_across(rng, left, right, y),
    ]
    spots: dict[int, list[Mark]] = {}
    for mark in marks:
        if name in mark.sizes:
            spots.setdefault(mark.sizes[name], []).append(mark)
    for value, here in spots.items():
        state = "good" if all(m.passed for m in here) else "bad"
        title = f"{name}={value}: {len(here)} points"
        x = _scale(rng, value, left, right)
        parts.append(
            f'<g><title>{escape(title)}</title><circle cx="{x:.1f}" cy="{y}" r="4.5" class="dot {state}"/></g>'
        )
    return "".join(parts)
