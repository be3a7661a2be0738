"""Constants that no formula gives, as tables of what they are at every size: a window by NumPy, `math.lcm(t, 4)`.

In the file stand the constants of all sizes one behind the other, where each starts, and what shapes they have:

    at    = (T - 3) // 1
    table = reshape(all[starts[at] : starts[at + 1]], shapes[at])
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.export.sizes.generalise.formulas import CannotFollowError, FormulaBuilder

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# A run is recorded at each size.
MOST_SIZES = 512
LARGEST_TABLE = 1 << 26  # bytes
Sizes = tuple[tuple[str, int], ...]


class Recorder(Protocol):
    """Records the module again."""

    @property
    def ranges(self) -> Mapping[str, range]:
        """The dims that move, and their values."""

    def constants(self, names: Sequence[str], table_sizes: TableSizes) -> Mapping[str, Sequence[Array]]:
        """The constants of the first trace that have these names, at each of the sizes."""


@dataclass(frozen=True)
class TableSizes:
    """The joint sizes of a table: the dims that its constant depends on, and the values of each."""

    ranges: tuple[tuple[str, range], ...]

    @property
    def count(self) -> int:
        """How many joint sizes there are."""
        return math.prod(len(values) for _, values in self.ranges)

    def __iter__(self) -> Iterator[Mapping[str, int]]:
        """The joint sizes, the last dim first to move."""
        names = [name for name, _ in self.ranges]
        return (dict(zip(names, numbers, strict=True)) for numbers in product(*(values for _, values in self.ranges)))

    def __str__(self) -> str:
        return " and ".join(name for name, _ in self.ranges)


def dims_of(values: Sequence[Any], sizes: Sequence[Sizes], ranges: Mapping[str, range]) -> TableSizes:
    """The dims that a constant, `values` at the traced `sizes`, depends on.

    The first sizes are the base; the others change one dim, or all of them where none alone moves it. Raises
    CannotFollowError where there are more than MOST_SIZES joint sizes.
    """
    import numpy as np

    base = dict(sizes[0])
    moving: set[str] = set()
    for at, value in zip(sizes[1:], values[1:], strict=True):
        changed = {name for name, size in at if size != base[name]}
        if len(changed) == 1 and not np.array_equal(value, values[0]):
            moving |= changed
    for at, value in zip(sizes, values, strict=True):
        for other, other_value in zip(sizes, values, strict=True):
            changed = {name for name, size in at if size != dict(other)[name]}
            if not changed & moving and not np.array_equal(value, other_value):
                # Jointly, or at sizes that are far from the base.
                moving |= changed
    table_sizes = TableSizes(tuple((n, r) for n, r in ranges.items() if n in moving or not moving))
    if table_sizes.count > MOST_SIZES:
        raise CannotFollowError(
            f"a table of {table_sizes.count:,} sizes of {table_sizes} would take too long (at most {MOST_SIZES})"
        )
    return table_sizes


def look_up(table_sizes: TableSizes, constants: Sequence[Array], builder: FormulaBuilder) -> tuple[str, str]:
    """The name of the tensor that is the constant of the sizes at hand, of those in the order of `table_sizes`, and
    what it is in words.

    Raises CannotFollowError where the constants differ in rank, or take more than LARGEST_TABLE bytes.
    """
    import numpy as np

    first = constants[0]
    if any(c.ndim != first.ndim or c.dtype != first.dtype for c in constants):
        raise CannotFollowError(f"its rank or type depends on {table_sizes}")
    total = sum(c.nbytes for c in constants)
    if total > LARGEST_TABLE:
        raise CannotFollowError(f"its values at {len(constants)} sizes of {table_sizes} take {total >> 20} MiB")
    at = _number_of_sizes(table_sizes, builder)
    words = f"a table of its values at {len(constants)} sizes of {table_sizes}"
    if all(c.shape == first.shape for c in constants):
        rows = builder.op("Gather", [builder.table(np.stack(constants)), builder.scalar(at)], axis=0)
        return rows, words
    ends = np.cumsum([0, *(c.size for c in constants)], dtype=np.int64)
    start = builder.op("Gather", [builder.table(ends[:-1]), at], axis=0)
    end = builder.op("Gather", [builder.table(ends[1:]), at], axis=0)
    shape = builder.op("Gather", [builder.table(np.array([c.shape for c in constants], np.int64)), builder.scalar(at)],
                       axis=0)  # fmt: skip
    values = builder.table(np.concatenate([c.reshape(-1) for c in constants]))
    part = builder.op("Slice", [values, start, end, builder.constant([0])])
    return builder.op("Reshape", [part, shape]), words


def _number_of_sizes(table_sizes: TableSizes, builder: FormulaBuilder) -> str:
    """A vector of one element: which of the joint sizes the inputs have."""
    at = ""
    for name, values in table_sizes.ranges:
        steps = builder.op("Sub", [builder.dim(name), builder.constant([values.start])])
        if values.step != 1:
            steps = builder.op("Div", [steps, builder.constant([values.step])])
        if at:
            at = builder.op("Mul", [at, builder.constant([len(values)])])
            steps = builder.op("Add", [at, steps])
        at = steps
    return at
