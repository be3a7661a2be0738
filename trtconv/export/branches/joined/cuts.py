"""Where the range of one dim is cut in two."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import DimRange, ShapeSpace

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class CannotSplitError(Exception):
    """The branch is not one on the size of a single dim."""


@dataclass(frozen=True)
class Cut:
    """The range of `dim` falls into sizes up to `last`, and those above."""

    dim: str
    last: int

    def __str__(self) -> str:
        return f"for {self.dim} up to {self.last}"

    @property
    def turn(self) -> dict[str, int]:
        """A size at which it turns."""
        return {self.dim: self.last}

    def holds_at(self, grids: Mapping[str, Array]) -> Array:
        """Where arrays of sizes are below the cut."""
        return grids[self.dim] <= self.last

    def halves(self, space: ShapeSpace) -> tuple[ShapeSpace, ShapeSpace]:
        """The space below and above the cut."""
        whole = space[self.dim]
        values = list(whole.values())
        low, high = [v for v in values if v <= self.last], [v for v in values if v > self.last]
        if not low or not high:
            raise CannotSplitError(f"{self.dim} is not cut at {self.last}")
        parts = (DimRange(v[0], min(max(whole.opt, v[0]), v[-1]), v[-1], whole.multiple) for v in (low, high))
        first, second = (space.merged(ShapeSpace(((self.dim, p),))) for p in parts)
        return first, second
