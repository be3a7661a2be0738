"""One way to read JSON that somebody else may have written: finite numbers, bounded depth, ValueError for the rest."""

from __future__ import annotations

import json
import math
from typing import Any

# Python's own limit is 4,300 digits; no size, count or digest in our files has more than 20.
_MOST_DIGITS = 100


def parse_json(text: str | bytes | bytearray) -> Any:
    """The value of a JSON text. Raises ValueError where it is none, is nested too deep, or has NaN or infinities.

    What later becomes an int or a float then does so without OverflowError.
    """
    try:
        return json.loads(text, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error


def _refuse(word: str) -> float:
    raise ValueError(f"it holds {word}")


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds the number {text[:20]}, which is too large")
    return number


def _bounded(text: str) -> int:
    if len(text) > _MOST_DIGITS:
        raise ValueError(f"it holds a number of {len(text)} digits")
    return int(text)
