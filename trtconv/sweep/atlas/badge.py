"""The badge: an SVG of two fields, in the colour of the worst cell."""

from __future__ import annotations

from collections.abc import Sequence
from xml.sax.saxutils import escape

from trtconv.core.text.display import display_text
from trtconv.sweep.engine.verdicts import CellVerdict

_COLOURS = {"green": "#17794a", "amber": "#8a5a00", "red": "#b3261e", "open": "#5b6675"}
# About what a letter of 11 px takes.
_LETTER, _MARGIN = 6.6, 10


def count_states(verdicts: Sequence[CellVerdict]) -> dict[str, int]:
    """How many cells are green, amber, red and open."""
    return {state: sum(v.state == state for v in verdicts) for state in _COLOURS}


def badge_svg(verdicts: Sequence[CellVerdict]) -> str:
    """The picture, which loads nothing."""
    counts = count_states(verdicts)
    text = ", ".join(f"{n} {state}" for state, n in counts.items() if n) or "no cells"
    colour = _COLOURS[next((s for s in ("red", "open", "amber") if counts[s]), "green")]
    label, text = "trtconv", escape(display_text(text))
    left, right = (round(len(t) * _LETTER) + 2 * _MARGIN for t in (label, text))
    style = 'font-family="Verdana,sans-serif" font-size="11" fill="#fff" text-anchor="middle"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + right}" height="20" role="img" '
        f'aria-label="{label}: {text}"><title>{label}: {text}</title>'
        f'<rect width="{left}" height="20" fill="#3b4350"/>'
        f'<rect x="{left}" width="{right}" height="20" fill="{colour}"/>'
        f'<g {style}><text x="{left / 2:g}" y="14">{label}</text>'
        f'<text x="{left + right / 2:g}" y="14">{text}</text></g></svg>\n'
    )
