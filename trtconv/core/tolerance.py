"""What counts as equal, as a user may demand it."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from trtconv.core.errors import InvalidRequestError


@dataclass(frozen=True)
class Tolerance:
    """A user's own limits: `|actual - expected| <= atol * max(1, magnitude) + rtol * |expected|`, and the noise floor.

    A limit that is None follows the noise floor and the target's arithmetic (see `proof.allowance`). `cosine` and
    `mismatched` (a share of the elements) add limits; `why` explains one looser than the default.

    Raises InvalidRequestError for limits under which everything or nothing would be equal (NaN, infinity, below zero).
    """

    rtol: float | None = None
    atol: float | None = None
    cosine: float | None = None
    mismatched: float | None = None
    why: str = ""

    def __post_init__(self) -> None:
        """Check the limits."""
        limits = {
            "rtol": (self.rtol, 0.0, sys.float_info.max),
            "atol": (self.atol, 0.0, sys.float_info.max),
            "mismatched": (self.mismatched, 0.0, 1.0),
            "cosine": (self.cosine, -1.0, 1.0),
        }
        for name, (value, low, high) in limits.items():
            if value is not None and not low <= value <= high:
                bounds = f"from {low:g} to {high:g}" if high == 1.0 else "finite and non-negative"
                raise InvalidRequestError(
                    f"tolerance {name} must be {bounds}, got {value}", hint="write another number"
                )

    def over(self, other: Tolerance | None) -> Tolerance:
        """These limits, and those of `other` where this one has none."""
        if other is None:
            return self
        return Tolerance(
            other.rtol if self.rtol is None else self.rtol,
            other.atol if self.atol is None else self.atol,
            other.cosine if self.cosine is None else self.cosine,
            other.mismatched if self.mismatched is None else self.mismatched,
            self.why or other.why,
        )

    def __str__(self) -> str:
        """`rtol 0.001, atol by the noise floor`."""
        if self.rtol is None and self.atol is None:
            return "the noise floor"
        limits = (("rtol", self.rtol), ("atol", self.atol))
        return ", ".join(f"{name} {'by the noise floor' if v is None else f'{v:g}'}" for name, v in limits)


NO_LIMITS = Tolerance()
