"""The determinant of matrices of 2 or 3 rows, written out."""

from __future__ import annotations

from trtconv.rewrite.builder import Builder
from trtconv.rewrite.graph import Graph, Node
from trtconv.rewrite.rule import Found, Rule, Skip


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Det of matrices whose size is known to be 1, 2 or 3."""
    dims = graph.dims(node.inputs[0])
    if dims is None or dims[-1] not in (1, 2, 3) or dims[-2] != dims[-1]:
        return Skip("the matrices are not known to have 1, 2 or 3 rows")
    size = int(dims[-1] or 1)
    return Found((node,), lambda b: _determinant(b, node.inputs[0], list(range(size)), list(range(size))))


def _determinant(b: Builder, x: str, rows: list[int], columns: list[int]) -> str:
    """Expansion along the first row."""
    if len(rows) == 1:
        row = b.op("Gather", x, b.scalar(rows[0], dtype=7), axis=-2)
        return b.op("Gather", row, b.scalar(columns[0], dtype=7), axis=-1)
    total = ""
    for index, column in enumerate(columns):
        head = _determinant(b, x, rows[:1], [column])
        term = b.op("Mul", head, _determinant(b, x, rows[1:], [c for c in columns if c != column]))
        total = term if not total else b.op("Sub" if index % 2 else "Add", total, term)
    return total


RULE = Rule(
    name="det",
    why="No TensorRT has Det; of two or three rows it is a handful of products.",
    ops=("Det",),
    find=find,
    before="Det(x[N,2,2])",
    after="x00 * x11 - x01 * x10",
)
