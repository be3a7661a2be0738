"""One way to read a number that somebody wrote: finite and within its bounds."""

from __future__ import annotations

import math
from typing import Any

from trtconv.core.errors import InvalidRequestError


def parse_number(value: Any, what: str, low: float, high: float, hint: str | None = None) -> float:
    """A number or its text as a float from `low` to `high`.

    Raises InvalidRequestError for anything else: nan, inf, 1e400, text, a bool.
    """
    try:
        number = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not (math.isfinite(number) and low <= number <= high):
        bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"from {low:g} up"
        raise InvalidRequestError(
            f"{what} must be a finite number {bounds}, got {_format(value)}", hint=hint or "write another number"
        )
    return number


def _format(value: Any) -> str:
    try:
        text = str(value)
    except ValueError:  # an integer of over 4,300 digits
        return "a number with thousands of digits"
    return text if len(text) <= 40 else text[:40] + "..."
