"""What counts as equal, as a user may demand it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError


@dataclass(frozen=True)
class Tolerance:
    """What counts as equal. `cosine` and `mismatched` add limits; `why` explains one looser than the default.

    Raises InvalidRequestError for limits under which everything or nothing would be equal (NaN, infinity, below zero).
    """

    rtol: float = 1e-4
    atol: float = 1e-4
    cosine: float | None = None
    mismatched: float = 0.0
    why: str = ""

    def __post_init__(self) -> None:
        """Check the limits."""
        limits = {
            "rtol": (self.rtol, 0.0, sys.float_info.max),
            "atol": (self.atol, 0.0, sys.float_info.max),
            "mismatched": (self.mismatched, 0.0, 1.0),
            "cosine": (1.0 if self.cosine is None else self.cosine, -1.0, 1.0),
        }
        for name, (value, low, high) in limits.items():
            if not low <= value <= high:
                end = f"to {high:g}" if high == 1.0 else "up"
                raise InvalidRequestError(
                    f"the tolerance {name} = {value} is no limit", hint=f"write a number from {low:g} {end}"
                )


DEFAULT_TOLERANCE = Tolerance()
