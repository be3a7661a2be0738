"""AdaptivePool's launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, evaluate, less, product
from trtconv.plugins.aot.launch import by_library, kernel
from trtconv.plugins.described.adaptive_pool import OP_TYPE

_THREADS = 256
# Values of a bin above which more threads share it, and by how many more threads than before.
_STEPS = ((16, 7), (256, 24), (8192, 224))


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The last two axes become `output_size`."""
    (x,) = inputs
    return ((*x[:-2], *attributes["output_size"]),)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """1, 8, 32 or 256 threads to a bin, by its size. Raises UnsupportedError where positions need 64 bits."""
    del target
    (x,) = inputs
    rows, columns = attributes["output_size"]
    height, width = x.dims[-2:]
    planes = product(x.dims[:-2])
    outputs = planes * (rows * columns)
    for what, size in (
        ("outputs", outputs),
        ("positions down", height * (rows + 1) + rows),
        ("positions across", width * (columns + 1) + columns),
        ("values of a bin", (ceil_div(height, rows) + 1) * (ceil_div(width, columns) + 1)),
    ):
        most = evaluate(size, [x.high])
        if most > LARGEST:
            raise by_library(OP_TYPE, f"it has {most} {what} at the largest shape, of {LARGEST} at most")
    values = (ceil_div(height, rows) + 1) * (ceil_div(width, columns) + 1)
    group: Size = 1
    for above, more in _STEPS:
        group = group + more * less(above, values)
    macros = {"OUT_HEIGHT": rows, "OUT_WIDTH": columns, "MAXIMUM": attributes["mode"]}
    if isinstance(group, int):
        macros["GROUP"] = group
    return kernel(
        OP_TYPE,
        "adaptive_pool",
        inputs,
        macros,
        grid=ceil_div(outputs, _THREADS // group),
        block=_THREADS,
        arguments=(("planes", planes), ("height", height), ("width", width), ("group", group)),
    )
