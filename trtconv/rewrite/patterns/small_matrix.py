"""Determinants and inverses of matrices of a few rows, written out element by element."""

from __future__ import annotations

from dataclasses import dataclass, field

from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

INT64 = 7
LARGEST = 4


@dataclass
class Elements:
    """The elements of matrices [.., n, n] as values [..], and the minors made of them so far."""

    g: Replacement
    matrix: Value
    size: int
    computed: dict[tuple[tuple[int, ...], tuple[int, ...]], Value] = field(default_factory=dict)

    def minor(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Value:
        """The determinant of these rows and columns, by expansion along the first row."""
        key = (rows, columns)
        if key not in self.computed:
            self.computed[key] = self._element(rows[0], columns[0]) if len(rows) == 1 else self._expanded(rows, columns)
        return self.computed[key]

    def _element(self, row: int, column: int) -> Value:
        g = self.g
        key = ((row,), ())
        if key not in self.computed:
            self.computed[key] = g.gather(self.matrix, g.scalar(row, dtype=INT64), axis=-2)
        return g.gather(self.computed[key], g.scalar(column, dtype=INT64), axis=-1)

    def _expanded(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> Value:
        total: Value = ""
        for index, column in enumerate(columns):
            rest = self.minor(rows[1:], tuple(c for c in columns if c != column))
            term = self.g.mul(self.minor(rows[:1], (column,)), rest)
            total = term if not total else self.g.op("Sub" if index % 2 else "Add", total, term)
        return total

    @property
    def determinant(self) -> Value:
        """Of the whole matrix."""
        every = tuple(range(self.size))
        return self.minor(every, every)

    def inverse(self) -> Value:
        """The transposed cofactors over the determinant, [.., n, n]; infinite or NaN where that is zero."""
        g, every = self.g, range(self.size)
        scale = g.reciprocal(self.determinant)
        parts = []
        for row in every:
            for column in every:
                # The element at (row, column) of the inverse is the cofactor at (column, row).
                sign = -1 if (row + column) % 2 else 1
                rows, columns = tuple(r for r in every if r != column), tuple(c for c in every if c != row)
                value = g.mul(self.minor(rows, columns), scale) if self.size > 1 else scale
                parts.append(g.unsqueeze(g.neg(value) if sign < 0 else value, -1))
        return g.reshape(g.concat(*parts, axis=-1), g.shape_of(self.matrix))
