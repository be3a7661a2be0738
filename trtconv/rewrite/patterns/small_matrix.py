"""Elimination in matrices of a few rows, written out row by row, with pivots: cofactors cancel where rows are alike.

With partial pivoting the error is about the matrix's condition times the last digit (Higham, "Accuracy and Stability of
Numerical Algorithms", 14.4), as of the LU factors that ONNX Runtime takes. No matrix product is used: it is what TF32
shortens.
"""

from __future__ import annotations

import numpy as np

from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7
LARGEST = 8


def inverse(g: Replacement, matrix: Value, size: int) -> Value:
    """The inverse of FP32 matrices [.., n, n]; infinite or NaN where there is none."""
    unit = g.const(np.eye(size, dtype=np.float32), "unit")
    units = g.expand(unit, g.shape_of(matrix))
    reduced, _ = _eliminate(g, g.concat(matrix, units, axis=-1), size)
    return g.gather(reduced, g.const(np.arange(size, 2 * size, dtype=np.int64), "columns"), axis=-1)


def determinant(g: Replacement, matrix: Value, size: int) -> Value:
    """The determinant of FP32 matrices [.., n, n], [..]; 0 where a pivot is 0."""
    _, pivots = _eliminate(g, matrix, size, singular=True)
    product: Value = ""
    for k, (pivot, index) in enumerate(pivots):
        factor = g.mul(g.squeeze(pivot, -2, -1), _sign(g, index, k))
        product = g.mul(product, factor) if product else factor
    return product


def _eliminate(
    g: Replacement, x: Value, size: int, *, singular: bool = False
) -> tuple[Value, list[tuple[Value, Value]]]:
    """The first `size` columns of [.., n, m] reduced to the unit matrix; each pivot [.., 1, 1] with its row's index.

    Where matrices may be `singular`, a pivot of 0 divides nothing. Rows are chosen and not computed, for
    `row + (new - row)` loses the digits of `new` where the row is larger.
    """
    rows = g.const(np.arange(size, dtype=np.int64), "rows")
    pivots = []
    for k in range(size):
        index = g.const(np.array([k], np.int64), "index")
        here = g.const((np.arange(size) == k)[:, None], "row")
        magnitude = g.absolute(g.squeeze(g.gather(x, index, axis=-1), -1))
        best = g.op("ArgMax", _open(g, magnitude, k, size), axis=-1, keepdims=1)
        chosen = g.unsqueeze(g.equal(best, rows), -1)
        row, pivot_row = g.gather(x, index, axis=-2), _row(g, x, chosen)
        x = g.where(here, pivot_row, g.where(chosen, row, x))
        pivot = g.gather(pivot_row, index, axis=-1)
        pivots.append((pivot, best))
        scaled = g.div(pivot_row, _safe(g, pivot) if singular else pivot)
        x = g.where(here, scaled, g.sub(x, g.mul(g.gather(x, index, axis=-1), scaled)))
    return x, pivots


def _safe(g: Replacement, divisor: Value) -> Value:
    """The divisor, and 1 where it is 0."""
    return g.where(g.equal(divisor, g.scalar(0.0, dtype=FLOAT)), g.scalar(1.0, dtype=FLOAT), divisor)


def _row(g: Replacement, x: Value, chosen: Value) -> Value:
    """The chosen row of each matrix, [.., 1, m]."""
    return g.reduce("ReduceSum", g.where(chosen, x, g.scalar(0.0, dtype=FLOAT)), [-2])


def _open(g: Replacement, magnitude: Value, k: int, size: int) -> Value:
    """The magnitudes among which a pivot is looked for: rows above are done."""
    if not k:
        return magnitude
    return g.where(g.const(np.arange(size) >= k, "open"), magnitude, g.scalar(-1.0, dtype=FLOAT))


def _sign(g: Replacement, index: Value, k: int) -> Value:
    """-1 where rows k and `index` [.., 1] change places, else 1."""
    stays = g.equal(g.squeeze(index, -1), g.scalar(k, dtype=INT64))
    return g.where(stays, g.scalar(1.0, dtype=FLOAT), g.scalar(-1.0, dtype=FLOAT))
