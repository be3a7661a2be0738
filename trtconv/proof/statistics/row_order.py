"""Rows that a top-k put into another order, where their scores tie within what is allowed.

A detector's rows are sorted by their scores. Two rows whose scores differ by less than the original's own noise may
change places in any right evaluation, and then all their other columns differ. They are put back where the rows of an
output, or those of another output that is sorted like it, tie, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Fewer rows may be sorted by chance.
FEWEST_ROWS = 8
# Rows of which more tie in a row are alike, and say nothing of an order; nor do those of which this share ties.
LONGEST_TIE = 8
MOST_TIED = 0.25
# Columns that fall along the rows; more are those of a table.
MOST_COLUMNS = 4


@dataclass(frozen=True)
class _Key:
    """Scores [batch, rows] that fall along the rows, and by how much each may be off; `owner` is their output."""

    owner: str
    scores: Array
    limit: Array


def in_order_of(
    expected: Mapping[str, Array], actual: Mapping[str, Array], limits: Mapping[str, Array]
) -> dict[str, Array]:
    """The actual outputs with tied rows in the order of the expected ones, where that makes a whole tie equal.

    `limits` is the allowed error of each element, by output. The rows of all outputs that belong to a key change places
    together, but for those that are sorted by themselves. Where outputs have two orders (those of the queries of a
    detector and of its detections), the others may be in either.
    """
    restored = dict(actual)
    failing = [n for n in expected if _comparable(expected, actual, n) and not _within(expected, actual, limits, n)]
    if not failing:
        return restored
    keys = [key for n in expected if n in limits for key in _keys(n, expected[n], limits[n])]
    for key in sorted(keys, key=lambda k: k.owner not in failing):
        group = [
            n
            for n in expected
            if _comparable(expected, restored, n)
            and _rows(expected[n], key) is not None
            and (n == key.owner or all(k.owner != n for k in keys))
        ]
        if any(not _within(expected, restored, limits, n) for n in group):
            two_orders = any(k.owner != key.owner for k in keys)
            free = frozenset(n for n in group if n != key.owner and two_orders)
            restored |= _restored(key, group, free, expected, restored, limits)
    return restored


def _comparable(expected: Mapping[str, Array], actual: Mapping[str, Array], name: str) -> bool:
    return name in actual and expected[name].shape == actual[name].shape and expected[name].size > 0


def _within(expected: Mapping[str, Array], actual: Mapping[str, Array], limits: Mapping[str, Array], name: str) -> bool:
    return bool(_equal(expected[name], actual[name], limits[name]).all())


def _equal(expected: Array, actual: Array, limit: Array) -> Array:
    import numpy as np

    with np.errstate(all="ignore"):
        near = np.abs(actual.astype(np.float64) - expected.astype(np.float64)) <= limit
    same: Array = near | (expected == actual) | ((expected != expected) & (actual != actual))
    return same


def _keys(name: str, values: Array, limit: Array) -> Iterator[_Key]:
    """By what an output is sorted: itself, one of its columns, or the largest element of each row."""
    import numpy as np

    if values.dtype.kind != "f" or values.ndim < 1:
        return
    limit = np.broadcast_to(limit, values.shape)
    plain, limit = _without_ones(values), _without_ones(limit)
    if plain.ndim in (1, 2) and _sorted(plain.reshape(-1, plain.shape[-1])):
        yield _Key(name, plain.reshape(-1, plain.shape[-1]), limit.reshape(-1, plain.shape[-1]))
    if plain.ndim not in (2, 3):
        return
    rows, allowed = (a.reshape(-1, *plain.shape[-2:]) for a in (plain, limit))
    if rows.shape[1] < FEWEST_ROWS or not np.isfinite(rows).all():
        return
    top = rows.argmax(axis=-1)[..., None]
    largest = [np.take_along_axis(a, top, -1)[..., 0] for a in (rows, allowed)]
    falling = np.flatnonzero((rows[:, 1:] <= rows[:, :-1]).all(axis=(0, 1)))
    candidates = [tuple(largest), *((rows[..., c], allowed[..., c]) for c in falling[:MOST_COLUMNS])]
    yield from (_Key(name, s, a) for s, a in candidates if _sorted(s))


def _without_ones(values: Array) -> Array:
    """Without the axes of size 1 before all others: a batch of one, a stack of one layer."""
    shape = list(values.shape)
    while len(shape) > 1 and shape[0] == 1:
        shape.pop(0)
    return values.reshape(shape)


def _sorted(scores: Array) -> bool:
    import numpy as np

    if scores.shape[-1] < FEWEST_ROWS or not np.isfinite(scores).all():
        return False
    return bool((scores[:, 1:] <= scores[:, :-1]).all() and (scores[:, -1] < scores[:, 0]).all())


def _rows(values: Array, key: _Key) -> Array | None:
    """The output as [batch, rows, rest] of a key; None where it has no such rows."""
    batch, count = key.scores.shape
    plain = _without_ones(values)
    if batch == 1 and plain.shape[:1] == (count,):
        return plain.reshape(1, count, -1)
    return plain.reshape(batch, count, -1) if plain.shape[:2] == (batch, count) else None


def _restored(
    key: _Key,
    group: Sequence[str],
    free: frozenset[str],
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    limits: Mapping[str, Array],
) -> dict[str, Array]:
    """The group's outputs with rows back in their places, where a whole tie can be put back.

    A `free` output may stay as it is where it is equal so.
    """
    import numpy as np

    expected_rows = {n: _rows(expected[n], key) for n in group}
    actual_rows = {n: _rows(np.array(actual[n]), key) for n in group}
    allowed = {n: _rows(np.array(np.broadcast_to(limits[n], expected[n].shape)), key) for n in group}
    for batch, scores in enumerate(key.scores):
        for tie in _ties(scores, key.limit[batch]):
            fits, members = np.ones((len(tie), len(tie)), bool), []
            for n in group:
                rows, limit, others = expected_rows[n][batch, tie], allowed[n][batch, tie], actual_rows[n][batch, tie]  # type: ignore[index]
                alike = np.asarray(_equal(rows[:, None], others[None], limit[:, None]).all(axis=-1))
                if n not in free or not alike.diagonal().all():
                    fits &= alike
                    members.append(n)
            order = _matching(fits)
            if order is None or fits.diagonal().all():
                continue
            for n in members:
                actual_rows[n][batch, tie] = actual_rows[n][batch, [tie[i] for i in order]]  # type: ignore[index]
    return {n: v.reshape(expected[n].shape) for n, v in actual_rows.items() if v is not None}


def _ties(scores: Array, limit: Array) -> Iterator[list[int]]:
    """Runs of rows of which each ties with the next."""
    tied = scores[:-1] - scores[1:] <= limit[:-1] + limit[1:]
    if tied.mean() > MOST_TIED:
        return
    run = [0]
    for index, ties in enumerate([*tied, False]):
        if ties:
            run.append(index + 1)
            continue
        if 1 < len(run) <= LONGEST_TIE:
            yield run
        run = [index + 1]


def _matching(fits: Array) -> list[int] | None:
    """For each expected row another actual one that fits, by augmenting paths; None when some have none."""
    takers: dict[int, int] = {}

    def assign(row: int, visited: set[int]) -> bool:
        for other in range(len(fits)):
            if fits[row, other] and other not in visited:
                visited.add(other)
                if other not in takers or assign(takers[other], visited):
                    takers[other] = row
                    return True
        return False

    if not all(assign(row, set()) for row in range(len(fits))):
        return None
    return [other for _, other in sorted((row, other) for other, row in takers.items())]
