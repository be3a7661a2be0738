"""Joint sizes: all combinations of the dims of a shape space, in arrays, and in an order made for coverage.

A condition such as `h * w == 769 * 1013` holds at one of millions of pairs. Sampling never comes there; evaluating the
condition on arrays of all pairs takes a fraction of a second.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import DimRange, ShapeSpace

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Elements of one array; an int64 array of a chunk is 8 MiB, which stays in a cache of usual size.
CHUNK = 1 << 20
# The levels of a dim that are paired with those of every other dim.
LEVELS = 8
STEPS = (2, 4, 8, 16, 32, 64, 3, 5, 6, 7, 12, 14)
MOST_SHARED = 4096


def count_sizes(space: ShapeSpace, names: Sequence[str] | None = None) -> int:
    """The number of joint sizes of these dims, of all when None."""
    chosen = list(space) if names is None else names
    return math.prod(len(space[n].values()) for n in chosen)


def size_grids(space: ShapeSpace, names: Sequence[str], chunk: int = CHUNK) -> Iterator[dict[str, Array]]:
    """Open int64 grids that broadcast against each other to at most `chunk` joint sizes; together they are all.

    An expression of one dim costs its own length only, as with `numpy.ix_`. Without names there is one empty grid.
    """
    import numpy as np

    ranges = [space[n].values() for n in names]
    # Innermost dims stay whole as long as they fit.
    widths, room = [1] * len(names), chunk
    for axis in reversed(range(len(names))):
        widths[axis] = max(1, min(len(ranges[axis]), room))
        room //= widths[axis]
    starts = [range(0, len(r), width) for r, width in zip(ranges, widths, strict=True)]
    for corner in itertools.product(*starts):
        grids = {}
        for axis, name in enumerate(names):
            part = ranges[axis][corner[axis] : corner[axis] + widths[axis]]
            shape = [1] * len(names)
            shape[axis] = len(part)
            grids[name] = np.arange(part.start, part.stop, part.step, dtype=np.int64).reshape(shape)
        yield grids


def sizes_where(mask: Array, grids: Mapping[str, Array], most: int) -> list[dict[str, int]]:
    """Up to `most` joint sizes of a chunk at which `mask` (of the broadcast shape) holds: ends, and some between."""
    import numpy as np

    shape = np.broadcast_shapes(*(g.shape for g in grids.values()))
    if not grids:
        return [{}] if np.any(mask) else []
    flat = np.flatnonzero(np.broadcast_to(mask, shape))
    if not flat.size:
        return []
    chosen = np.unique(np.linspace(0, flat.size - 1, min(most, flat.size)).round().astype(np.int64))
    places = np.unravel_index(flat[chosen], shape)
    dim_values = [np.broadcast_to(g, shape)[places] for g in grids.values()]
    return [dict(zip(grids, map(int, values), strict=True)) for values in zip(*dim_values, strict=True)]


def covering_sizes(space: ShapeSpace, batch: Sequence[str], seed: int = 0) -> Iterator[dict[str, int]]:
    """Joint sizes without end, each once, until all are given: those that most likely decide something come first.

    All corners; what all dims but the batch share (a divisor, equality); every pair of levels of two dims (a covering
    array); then, where there are few, all of them in random order, else a low-discrepancy sequence.
    """
    emitted: set[tuple[int, ...]] = set()
    names = list(space)
    total = count_sizes(space)
    parts: Iterator[dict[str, int]] = itertools.chain(
        _corners(space), _alike(space, batch, seed), _paired(space, seed), _rest(space, total, seed)
    )
    for sizes in parts:
        key = tuple(sizes[n] for n in names)
        if key not in emitted:
            emitted.add(key)
            yield sizes
        if len(emitted) >= total:
            return


def _corners(space: ShapeSpace) -> Iterator[dict[str, int]]:
    ends = [(n, dict.fromkeys((r.values()[0], r.values()[-1]))) for n, r in space.dims]
    for values in itertools.islice(itertools.product(*(v for _, v in ends)), 64):
        yield dict(zip((n for n, _ in ends), values, strict=True))


def _alike(space: ShapeSpace, batch: Sequence[str], seed: int) -> Iterator[dict[str, int]]:
    """Sizes at which all dims but the batch are multiples of one number, or equal (`h % 8 == 0 and w % 8 == 0`)."""
    dims = [(n, r) for n, r in space.dims if n not in batch and r.min != r.max]
    if len(dims) < 2:
        return
    chance = random.Random(seed)
    base = {n: chance.choice(r.values()) for n, r in space.dims}
    for step in STEPS:
        lists = [_multiples(r, step) for _, r in dims]
        if all(lists):
            yield {**base, **{n: chance.choice(values) for (n, _), values in zip(dims, lists, strict=True)}}
    first, *others = (r for _, r in dims)
    shared = [v for v in first.values()[:MOST_SHARED] if all(v in r for r in others)]
    for size in chance.sample(shared, min(2, len(shared))):
        yield {**base, **{n: size for n, _ in dims}}


def _multiples(rng: DimRange, step: int) -> range:
    both = math.lcm(step, rng.multiple)
    return range(-(-rng.min // both) * both, rng.max + 1, both)


def _paired(space: ShapeSpace, seed: int) -> Iterator[dict[str, int]]:
    """Every pair of levels of every two dims, the others at a level drawn at random."""
    chance = random.Random(seed)
    levels = {n: _levels(r) for n, r in space.dims}
    pairs = [{a: u, b: v} for a, b in itertools.combinations(levels, 2) for u in levels[a] for v in levels[b]]
    for pair in chance.sample(pairs, len(pairs)):
        yield {n: pair.get(n, chance.choice(levels[n])) for n in levels}


def _levels(rng: DimRange) -> list[int]:
    values = rng.values()
    many = min(LEVELS, len(values))
    return [values[round(i * (len(values) - 1) / max(1, many - 1))] for i in range(many)]


def _rest(space: ShapeSpace, total: int, seed: int) -> Iterator[dict[str, int]]:
    ranges = [(n, r.values()) for n, r in space.dims]
    if total <= CHUNK:
        for index in random.Random(seed).sample(range(total), total):
            yield _unravel(index, ranges)
        return
    # Kronecker's sequence of the roots of x**(d + 1) == x + 1 (Roberts 2018): no two dims march in step.
    root = 2.0
    for _ in range(40):
        root = (1.0 + root) ** (1.0 / (len(ranges) + 1))
    for turn in itertools.count(1):
        yield {
            n: values[int((0.5 + turn * root ** -(axis + 1)) % 1.0 * len(values))]
            for axis, (n, values) in enumerate(ranges)
        }


def _unravel(index: int, ranges: Sequence[tuple[str, range]]) -> dict[str, int]:
    sizes = {}
    for name, values in reversed(ranges):
        index, digit = divmod(index, len(values))
        sizes[name] = values[digit]
    return {n: sizes[n] for n, _ in ranges}


@dataclass(frozen=True)
class SizeCoverage:
    """How much of a shape space was tried: `tried` of `total` joint sizes were run and compared.

    `paths` are the ways through the module that sizes decide, each of them compared, and `followed` the joint sizes
    that take one of these. `lines` are the user's lines that decide (`net.py:12`), `tables` those that look a size up;
    `obstacle` says why the module's decisions could not be followed.
    """

    tried: int
    total: int
    paths: int = 0
    followed: int = 0
    lines: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()
    obstacle: str = ""

    @property
    def complete(self) -> bool:
        """True when every joint size was tried, or takes a path that was."""
        return self.tried >= self.total or (self.followed >= self.total and not self.tables and not self.obstacle)

    def __str__(self) -> str:
        """One line for the verdict."""
        text = f"sizes tried: {self.tried:,} of {self.total:,}"
        if self.tried >= self.total:
            return text
        text += " joint sizes"
        if self.tables:
            return f"{text}; the module looks its size up in a table at {', '.join(self.tables)}"
        at = f" at {', '.join(self.lines)}" if self.lines else ""
        if self.obstacle:
            more = f", and decides by size{at}" if at else ""
            return f"{text}; the module's decisions by size could not all be followed ({self.obstacle}){more}"
        if self.followed >= self.total:
            if self.paths == 1:
                return f"{text}; all of them take the same path through the module"
            paths = f"{self.paths} paths through the module" + (f" (it decides{at})" if at else "")
            return f"{text}; each takes one of {paths}, all of which were compared"
        return f"{text}; the module decides by size{at}, and only {self.followed:,} take a path that was compared"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "tried": self.tried,
            "total": self.total,
            "paths": self.paths,
            "followed": self.followed,
            "complete": self.complete,
            "lines": list(self.lines),
            "tables": list(self.tables),
            "obstacle": self.obstacle,
            "text": str(self),
        }


def coverage_of(data: Mapping[str, Any]) -> SizeCoverage:
    """The coverage that `SizeCoverage.as_dict` wrote. Raises KeyError, TypeError and ValueError for other data."""
    tried, total, paths, followed = (int(data[k]) for k in ("tried", "total", "paths", "followed"))
    lines, tables = (tuple(str(v) for v in data[k]) for k in ("lines", "tables"))
    return SizeCoverage(tried, total, paths, followed, lines, tables, str(data["obstacle"]))
