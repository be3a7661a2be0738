"""Heads of attention: parted and put together, turned by the angle of their place, and the keys after each query."""

from __future__ import annotations

from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

END = (1 << 31) - 1


def split_heads(g: Replacement, x: Value, heads: int, size: int = -1) -> Value:
    """[N, L, heads * size] as [N, heads, L, size]; one of both may be -1."""
    return g.transpose(g.reshape(x, 0, 0, heads, size), 0, 2, 1, 3)


def merge_heads(g: Replacement, x: Value) -> Value:
    """[N, heads, L, size] as [N, L, heads * size]."""
    return g.reshape(g.transpose(x, 0, 2, 1, 3), 0, 0, -1)


def later_keys(g: Replacement, query: Value, key: Value, *, ends_together: bool) -> Value:
    """Which keys [N, heads, S, D] come after each query [N, heads, L, D]: [L, S].

    The first query stands at the first key, or the last one at the last key where they end together.
    """
    rows, columns = (g.squeeze(g.size(x, 2), 0) for x in (query, key))
    row = g.arange(rows)
    row = g.add(row, g.sub(columns, rows)) if ends_together else row
    return g.less(g.unsqueeze(row, 1), g.unsqueeze(g.arange(columns), 0))


def rotate(g: Replacement, x: Value, cos: Value, sin: Value, turned: int, head: int, *, interleaved: bool) -> Value:
    """Turn the first `turned` channels of x [N, heads, L, `head`]; cos and sin are [N, 1, L, `turned` / 2].

    A pair is one channel of each half, or two neighbours where `interleaved`.
    """
    first, second = _halves(g, x, turned, interleaved)
    real = g.sub(g.mul(first, cos), g.mul(second, sin))
    imaginary = g.add(g.mul(first, sin), g.mul(second, cos))
    if interleaved:
        pairs = g.concat(g.unsqueeze(real, 4), g.unsqueeze(imaginary, 4), axis=4)
        y = g.reshape(pairs, g.ints(0, 0, 0, turned))
    else:
        y = g.concat(real, imaginary, axis=3)
    return g.concat(y, g.slice(x, g.ints(turned), g.ints(END), [3]), axis=3) if turned < head else y


def _halves(g: Replacement, x: Value, turned: int, interleaved: bool) -> tuple[Value, Value]:
    if interleaved:
        return tuple(g.slice(x, g.ints(i), g.ints(turned), [3], [2]) for i in (0, 1))
    half = turned // 2
    return g.slice(x, g.ints(0), g.ints(half), [3]), g.slice(x, g.ints(half), g.ints(turned), [3])
