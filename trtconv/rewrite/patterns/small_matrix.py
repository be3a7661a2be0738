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
    _, product = _eliminate(g, matrix, size, singular=True)
    return product


def _eliminate(g: Replacement, x: Value, size: int, *, singular: bool = False) -> tuple[Value, Value]:
    """The first `size` columns of [.., n, m] reduced to the unit matrix, and the product of the pivots, signed.

    Where matrices may be `singular`, a pivot of 0 divides nothing. Rows are chosen and not computed, for
    `row + (new - row)` loses the digits of `new` where the row is larger.
    """
    rows = g.const(np.arange(size, dtype=np.int64), "rows")
    product: Value = ""
    for k in range(size):
        index = g.const(np.array([k], np.int64), "index")
        here = g.const((np.arange(size) == k)[:, None], "row")
        magnitude = g.absolute(g.squeeze(g.gather(x, index, axis=-1), -1))
        best = g.op("ArgMax", _open(g, magnitude, k, size), axis=-1, keepdims=1)
        chosen = g.unsqueeze(g.equal(best, rows), -1)
        row, pivot_row = g.gather(x, index, axis=-2), _row(g, x, chosen)
        x = g.where(here, pivot_row, g.where(chosen, row, x))
        pivot = g.gather(pivot_row, index, axis=-1)
        product = _times(g, product, pivot, best, k)
        divisor = g.where(g.equal(pivot, g.scalar(0.0, dtype=FLOAT)), g.scalar(1.0, dtype=FLOAT), pivot)
        scaled = g.div(pivot_row, divisor if singular else pivot)
        x = g.where(here, scaled, g.sub(x, g.mul(g.gather(x, index, axis=-1), scaled)))
    return x, product


def _row(g: Replacement, x: Value, chosen: Value) -> Value:
    """The chosen row of each matrix, [.., 1, m]."""
    return g.reduce("ReduceSum", g.where(chosen, x, g.scalar(0.0, dtype=FLOAT)), [-2])


def _open(g: Replacement, magnitude: Value, k: int, size: int) -> Value:
    """The magnitudes among which a pivot is looked for: rows above are done."""
    if not k:
        return magnitude
    return g.where(g.const(np.arange(size) >= k, "open"), magnitude, g.scalar(-1.0, dtype=FLOAT))


def _times(g: Replacement, product: Value, pivot: Value, best: Value, k: int) -> Value:
    """The product with one more pivot; two rows that changed places change its sign."""
    stays = g.equal(g.squeeze(best, -1), g.scalar(k, dtype=INT64))
    sign = g.where(stays, g.scalar(1.0, dtype=FLOAT), g.scalar(-1.0, dtype=FLOAT))
    factor = g.mul(g.squeeze(pivot, -2, -1), sign)
    return g.mul(product, factor) if product else factor
