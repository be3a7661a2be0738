"""The launch of the depthwise convolution of rows: tiles of 2 by 2 positions, the widest access of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div
from trtconv.plugins.aot.launch import SIZES, VECTOR_BYTES, kernel
from trtconv.plugins.described.depthwise_conv import OP_TYPE

_THREADS, _ROWS, _COLUMNS = 128, 2, 2


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """A thread for each tile of 16 bytes of channels. Raises UnsupportedError where threads do not fit 32 bits."""
    del target
    x = inputs[0]
    channels, width = int(attributes["channels"]), int(attributes["width"])
    widest = VECTOR_BYTES // SIZES[x.dtype]
    pack = widest if channels % widest == 0 else 1
    height, across = x.dims[1] // width, -(-width // _COLUMNS)
    threads = x.dims[0] * ceil_div(height, _ROWS) * (across * (channels // pack))
    macros = {
        "CHANNELS": channels, "WIDTH": width, "PACK": pack, "ROWS": _ROWS, "COLUMNS": _COLUMNS, "ACROSS": across,
        "GELU": "true" if attributes["gelu"] else "false", "THREADS": _THREADS,
    }  # fmt: skip
    arguments = (("height", height), ("down", ceil_div(height, _ROWS)), ("threads", threads))
    return kernel(
        OP_TYPE, "depthwise_conv", inputs, macros, grid=ceil_div(threads, _THREADS), block=_THREADS, arguments=arguments
    )
