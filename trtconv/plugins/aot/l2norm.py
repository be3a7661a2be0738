"""L2Norm's launch: blocks that do one tile each. Those of the library stay, and it asks how many fit the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, equal, evaluate, larger, less, product
from trtconv.plugins.aot.launch import (
    ELEMENT_NUMBERS,
    SIZES,
    by_library,
    float_literal,
    kernel,
    packs,
    widest_pack,
)
from trtconv.plugins.l2norm import OP_TYPE

_THREADS, _ROW_THREADS, _WARP = 512, 128, 32
_MOST_ITEMS = 8
_SECTOR_BYTES = 32


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """A warp to a row where the axis is the last one, else a block to all channels of a run of positions.

    Raises UnsupportedError for an axis of a size that is not fixed.
    """
    x, scale = inputs
    axis = attributes["axis"]
    channels = x.dims[axis]
    if not isinstance(channels, int):
        raise by_library(OP_TYPE, f"axis {axis}, which is normalised, is dynamic")
    outer, inner = product(x.dims[:axis]), product(x.dims[axis + 1 :])
    macros: dict[str, object] = {
        "SCALE": ELEMENT_NUMBERS[scale.dtype], "EPSILON": float_literal(attributes["epsilon"]),
        "MODE": attributes["eps_mode"], "CHANNELS": channels,
    }  # fmt: skip
    pack = widest_pack(channels, x.dtype)
    assert isinstance(pack, int)
    if inner == 1 and channels <= _WARP * pack * _MOST_ITEMS:
        macros |= {"ROWS": 1, "PACK": pack, "ITEMS": 2 if channels <= _WARP * pack * 2 else _MOST_ITEMS}
        grid = ceil_div(outer, _ROW_THREADS // _WARP)
        return kernel(OP_TYPE, "l2norm", inputs, macros, grid=grid, block=_ROW_THREADS, arguments=(("outer", outer),))
    return _columns(inputs, macros, (outer, channels, inner), target)


def _columns(
    inputs: Sequence[EmbeddedInput], macros: dict[str, object], sizes: tuple[Size, int, Size], target: KernelTarget
) -> EmbeddedKernel:
    outer, channels, inner = sizes
    dtype = inputs[0].dtype
    lanes = choose_lanes(inputs, sizes, target)
    # The most blocks that any shape takes, since narrow packs take more of them than wide ones.
    most = evaluate(outer * ceil_div(inner, lanes), [i.high for i in inputs])
    if most > LARGEST:
        raise by_library(OP_TYPE, f"it may take {most} blocks at the largest shape, of {LARGEST} at most")
    items = -(-channels // (_THREADS // lanes))
    # One position to a block where there is only one, whatever the sectors.
    pack: Size = 1 if inner == 1 else held_pack(inner, dtype, lanes)
    if items > _MOST_ITEMS:
        pack = 0
    reloaded = equal(pack, 0)
    macros["ITEMS"] = 2 if items <= 2 else 4 if items <= 4 else _MOST_ITEMS
    if isinstance(pack, int):
        macros["PACK"] = pack
    tiles = ceil_div(inner, larger(lanes * pack, _WARP * reloaded))
    log2 = lanes.bit_length() - 1
    arguments = (("outer", outer), ("inner", inner), ("tiles", tiles), ("lanes_log2", log2 + (5 - log2) * reloaded),
                 ("pack", pack))  # fmt: skip
    return kernel(OP_TYPE, "l2norm", inputs, macros, grid=outer * tiles, block=_THREADS, arguments=arguments)


def held_pack(inner: Size, dtype: str, lanes: int) -> Size:
    """The pack's width; 0 where runs of so few lanes would read more sectors than they use, for columns read twice."""
    result: Size = 0
    for width, fits in packs(inner, dtype):
        run = lanes * width
        held: Size = 1 if run * SIZES[dtype] >= _SECTOR_BYTES else 1 - less(run, inner)
        # A wider pack is held wherever a narrower one is.
        result = larger(result, fits * held * width)
    return result


def choose_lanes(inputs: Sequence[EmbeddedInput], sizes: tuple[Size, int, Size], target: KernelTarget) -> int:
    """Lanes of a warp side by side along `inner`, as the library chooses them at the opt shape."""
    dtype, channels = inputs[0].dtype, sizes[1]
    outer, inner = (evaluate(s, [i.opt for i in inputs]) for s in (sizes[0], sizes[2]))
    width = 1 if inner == 1 else evaluate(widest_pack(inner, dtype), [])
    lanes = _WARP
    while lanes > 1 and -(-channels // (_THREADS // lanes)) > _MOST_ITEMS:
        lanes //= 2
    while lanes > 1 and lanes // 2 * width >= inner:
        lanes //= 2
    while (
        lanes > 1 and lanes // 2 * width * SIZES[dtype] >= _SECTOR_BYTES
        and outer * -(-inner // (lanes * width)) < 2 * target.multiprocessors
        and -(-channels // (_THREADS // lanes)) > 1
    ):  # fmt: skip
        lanes //= 2
    return lanes
