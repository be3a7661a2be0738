"""Rows of tables that stand out: the row of zeros of a padding index, one with a NaN, one that is far larger.

Of thousands of rows random indices hardly ever meet the one where a quotient is 0 / 0 or a double does not fit FP32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# Elements of a table that is looked at.
MOST_ELEMENTS = 1 << 27
# So many times as large as the median row is a row that stands out, and by so much smaller.
FAR = 1e3
# Rows of one table.
MOST_ROWS = 6


def looked_up(graph: onnx.GraphProto, indices: Collection[str]) -> Iterator[tuple[str, int]]:
    """Of each table that one of the values indexes by its rows: the index, and a row that stands out."""
    from onnx import numpy_helper

    tables = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type not in ("Gather", "GatherND") or len(node.input) < 2 or node.input[1] not in indices:
            continue
        table = tables.get(node.input[0])
        axis = next((a.i for a in node.attribute if a.name in ("axis", "batch_dims")), 0)
        if table is None or axis or not table.dims or table.external_data:
            continue
        yield from ((node.input[1], row) for row in standing_out(numpy_helper.to_array(table)))


def standing_out(table: Array) -> list[int]:
    """Rows of a table [rows, ...] of floats, or of whole numbers with a sign, that are not like the most of them."""
    import numpy as np

    if table.dtype.kind not in "fi" or table.shape[0] < 2 or not table.size or table.size > MOST_ELEMENTS:
        return []
    rows = table.reshape(table.shape[0], -1)
    is_float = table.dtype.kind == "f"
    sizes = np.abs(rows.astype(np.float64, copy=False)).max(axis=1)
    finite = sizes[np.isfinite(sizes)]
    typical = float(np.median(finite)) if finite.size else 0.0
    conditions = [np.isnan(sizes), np.isinf(sizes), sizes == 0, sizes > FAR * typical, sizes < typical / FAR]
    conditions.append((rows < 0).any(axis=1))
    if is_float and table.dtype.itemsize == 8:
        with np.errstate(over="ignore", invalid="ignore"):
            conditions.append((rows.astype(np.float32).astype(np.float64) != rows).any(axis=1) & np.isfinite(sizes))
    chosen: dict[int, None] = {}
    for condition in conditions:
        # What holds for half of the rows random indices meet as well.
        if 0 < condition.sum() <= len(rows) // 2:
            chosen[int(condition.argmax())] = None
    return list(chosen)[:MOST_ROWS]
