"""Conditions by size as the set of joint sizes at which they hold, as far as those are few enough to be listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.export.branches.by_size.size_guards import SizeGuard
from trtconv.proof.joint_sizes import count_sizes, size_grids

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Joint sizes of the dims of a condition up to which it becomes a mask.
MOST_LISTED = 1 << 16


@dataclass(frozen=True, eq=False)
class SizeMask:
    """The joint sizes of some dims at which a condition holds: `allowed` is a bool array with an axis for each."""

    names: tuple[str, ...]
    ranges: tuple[range, ...]
    allowed: Array

    def holds(self, grids: Mapping[str, Array]) -> Array:
        """Where it holds among joint sizes of the space, int64 arrays by dim that broadcast."""
        places = [(grids[n] - r.start) // r.step for n, r in zip(self.names, self.ranges, strict=True)]
        held: Array = self.allowed[tuple(places)]
        return held

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SizeMask) and self._identity == other._identity

    def __hash__(self) -> int:
        return hash(self._identity)

    @property
    def _identity(self) -> tuple[tuple[str, ...], bytes]:
        return self.names, self.allowed.tobytes()


def listed(guard: SizeGuard, space: ShapeSpace) -> SizeMask | None:
    """The guard as a mask; None when its dims have too many joint sizes. Raises UnreadableError."""
    import numpy as np

    if count_sizes(space, guard.names) > MOST_LISTED:
        return None
    ranges = tuple(space[n].values() for n in guard.names)
    (grids,) = size_grids(space, guard.names, MOST_LISTED)
    allowed = np.broadcast_to(guard.holds(grids), tuple(len(r) for r in ranges))
    return SizeMask(guard.names, ranges, np.ascontiguousarray(allowed))


def joined(conditions: Sequence[SizeGuard | SizeMask]) -> tuple[SizeGuard | SizeMask, ...]:
    """The same conditions with one mask for all that are of the same dims."""
    masks: dict[tuple[str, ...], SizeMask] = {}
    others: list[SizeGuard | SizeMask] = []
    for condition in conditions:
        if isinstance(condition, SizeGuard):
            others.append(condition)
            continue
        before = masks.get(condition.names)
        allowed = condition.allowed if before is None else before.allowed & condition.allowed
        masks[condition.names] = SizeMask(condition.names, condition.ranges, allowed)
    return (*masks.values(), *others)
