"""The launch of attention: a block for 64 rows of each head."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, product
from trtconv.plugins.aot.launch import SIZES, VECTOR_BYTES, float_literal, kernel
from trtconv.plugins.described.attention import OFFSETS, OP_TYPE

_ROWS, _THREADS = 64, 128
_COLUMNS = (32, 64, 128)


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """Batch and rows of the query, head beside head."""
    batch, rows, _ = inputs[0]
    return ((batch, rows, int(attributes["heads"]) * int(attributes["size"])),)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """Whole granules where all rows of all heads begin at a multiple of 16 bytes."""
    del target
    heads, size = int(attributes["heads"]), int(attributes["size"])
    offsets = [int(attributes[o]) for o in OFFSETS]
    widths = [i.dims[2] for i in inputs[:3]]
    width = VECTOR_BYTES // SIZES[inputs[0].dtype]
    vector = all(isinstance(n, int) and n % width == 0 for n in (size, *widths, *offsets))
    macros = {
        "HEADS": heads, "SIZE": size, "COLUMNS": next(c for c in _COLUMNS if c >= size),
        "VECTOR": "true" if vector else "false", "SCALE": float_literal(attributes["scale"]),
        **dict(zip(("QUERY", "KEY", "VALUE"), offsets, strict=True)),
    }  # fmt: skip
    batch, queries, _ = inputs[0].dims
    bias = inputs[3].dims
    tiles = ceil_div(queries, _ROWS)
    count = product([batch, heads, tiles])
    arguments = (
        ("queries", queries), ("keys", inputs[1].dims[1]),
        ("query_width", widths[0]), ("key_width", widths[1]), ("value_width", widths[2]),
        ("groups", bias[0]), ("bias_heads", bias[1]), ("bias_rows", bias[2]), ("bias_columns", bias[3]),
        ("tiles", tiles), ("count", count),
    )  # fmt: skip
    return kernel(OP_TYPE, "attention", inputs, macros, grid=count, block=_THREADS, arguments=arguments)
