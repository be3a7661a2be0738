"""The launch of the layer normalisation: lanes of a warp to a row that their registers hold, a warp to a longer one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, product
from trtconv.plugins.aot.launch import SIZES, VECTOR_BYTES, by_library, float_literal, kernel
from trtconv.plugins.described.layer_norm import OP_TYPE

_THREADS, _WARP, _MOST_PACKS = 128, 32, 8


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """As the library's launch. Raises UnsupportedError where the channels are not fixed."""
    del target
    x, scale = inputs[:2]
    channels = scale.dims[0]
    if not isinstance(channels, int):
        raise by_library(OP_TYPE, "the channels are dynamic")
    pack = VECTOR_BYTES // SIZES[x.dtype]
    packs = channels // pack
    in_registers = channels % pack == 0 and packs <= _WARP * _MOST_PACKS
    lanes = next((n for n in (8, 16) if packs <= n), _WARP) if in_registers else _WARP
    rows = product(x.dims[:-1])
    macros = {
        "CHANNELS": channels, "PACK": pack if in_registers else 0, "LANES": lanes, "COUNT": -(-packs // lanes),
        "EPSILON": float_literal(attributes["epsilon"]),
    }  # fmt: skip
    return kernel(
        OP_TYPE, "layer_norm", inputs, macros, grid=ceil_div(rows, _THREADS // lanes), block=_THREADS,
        arguments=(("rows", rows),),
    )  # fmt: skip
