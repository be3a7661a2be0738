"""Determinants and inverses of matrices of a few rows, written out element by element."""

from __future__ import annotations

from dataclasses import dataclass, field

from trtconv.rewrite.graph.builder import Builder

INT64 = 7
LARGEST = 4


@dataclass
class Elements:
    """The elements of matrices [.., n, n] as values [..], and the minors made of them so far."""

    b: Builder
    matrix: str
    size: int
    known: dict[tuple[tuple[int, ...], tuple[int, ...]], str] = field(default_factory=dict)

    def minor(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> str:
        """The determinant of these rows and columns, by expansion along the first row."""
        key = (rows, columns)
        if key not in self.known:
            self.known[key] = self._element(rows[0], columns[0]) if len(rows) == 1 else self._expanded(rows, columns)
        return self.known[key]

    def _element(self, row: int, column: int) -> str:
        b = self.b
        key = ((row,), ())
        if key not in self.known:
            self.known[key] = b.op("Gather", self.matrix, b.scalar(row, dtype=INT64), axis=-2)
        return b.op("Gather", self.known[key], b.scalar(column, dtype=INT64), axis=-1)

    def _expanded(self, rows: tuple[int, ...], columns: tuple[int, ...]) -> str:
        total = ""
        for index, column in enumerate(columns):
            rest = self.minor(rows[1:], tuple(c for c in columns if c != column))
            term = self.b.op("Mul", self.minor(rows[:1], (column,)), rest)
            total = term if not total else self.b.op("Sub" if index % 2 else "Add", total, term)
        return total

    @property
    def determinant(self) -> str:
        """Of the whole matrix."""
        every = tuple(range(self.size))
        return self.minor(every, every)

    def inverse(self) -> str:
        """The transposed cofactors over the determinant, [.., n, n]; infinite or NaN where that is zero."""
        b, every = self.b, range(self.size)
        scale = b.op("Reciprocal", self.determinant)
        parts = []
        for row in every:
            for column in every:
                # The element at (row, column) of the inverse is the cofactor at (column, row).
                sign = -1 if (row + column) % 2 else 1
                rows, columns = tuple(r for r in every if r != column), tuple(c for c in every if c != row)
                value = b.op("Mul", self.minor(rows, columns), scale) if self.size > 1 else scale
                parts.append(b.unsqueeze(b.op("Neg", value) if sign < 0 else value, -1))
        return b.op("Reshape", b.concat(*parts, axis=-1), b.shape_once(self.matrix))
