"""The launch of the depthwise convolution with its layer normalisation: the tile that takes any number of channels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, evaluate, product
from trtconv.plugins.aot.launch import by_library, float_literal, kernel
from trtconv.plugins.described.depthwise_conv_layer_norm import OP_TYPE

_ROWS, _PAIR = 1, 2
_TEAM, _PART_BYTES, _MOST_SHARED = 16, 8, 46 * 1024
_THREADS, _MOST_GROUPS = 192, 16


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """Tiles of 1 x 7 positions where a block takes them, else of 1 x 4.

    Raises UnsupportedError for a convolution whose kernel's size moves, and for images of 2^31 elements.
    """
    del target
    x, weight = inputs[:2]
    batch, height, width, _ = x.dims
    channels, size = int(attributes["channels"]), weight.dims[0]
    if not isinstance(size, int):
        raise by_library(OP_TYPE, "the size of the convolution's kernel is not fixed")
    pack = _PAIR if channels % _PAIR == 0 else 1
    columns = 7 if channels // pack <= 512 and pack == _PAIR else 4
    lanes, groups = channels // pack, groups_of(channels // pack, columns)
    image = max(evaluate(product(x.dims[1:]), [i.high for i in inputs]), evaluate(width * channels, [x.high]))
    if image > LARGEST:
        raise by_library(OP_TYPE, f"an image has {image} elements at the largest shape, of {LARGEST} at most")
    across, down = ceil_div(width, columns), ceil_div(height, _ROWS)
    tiles = batch * across * down
    threads = -(-lanes * groups // 32) * 32
    macros = {
        "SIZE": size, "PACK": pack, "ROWS": _ROWS, "COLUMNS": columns, "CHANNELS": channels, "GROUPS": groups,
        "THREADS": threads, "EPSILON": float_literal(attributes["epsilon"]),
    }  # fmt: skip
    arguments = (("height", height), ("width", width), ("across", across), ("down", down), ("tiles", tiles))
    return kernel(
        OP_TYPE,
        "depthwise_conv_layer_norm",
        inputs,
        macros,
        grid=ceil_div(tiles, groups),
        block=threads,
        shared=shared_bytes(lanes, columns, groups),
        arguments=arguments,
    )


def shared_bytes(lanes: int, positions: int, groups: int) -> int:
    """As sharedBytes in moments.cuh: the parts of every position's moments, and the moments."""
    parts = lanes // _TEAM if lanes % _TEAM == 0 else lanes
    return groups * positions * (parts + 1) * _PART_BYTES


def groups_of(lanes: int, positions: int) -> int:
    """Tiles of a block."""
    groups = min(max(_THREADS // lanes, 1), _MOST_GROUPS)
    while groups > 1 and shared_bytes(lanes, positions, groups) > _MOST_SHARED:
        groups -= 1
    return groups
