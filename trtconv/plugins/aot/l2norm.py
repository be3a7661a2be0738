"""L2Norm's launch: a block to a tile. The library also has clusters of blocks to one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, divides, equal, evaluate, larger, less, product, round_up
from trtconv.plugins.aot.launch import (
    ELEMENT_NUMBERS,
    SIZES,
    VECTOR_BYTES,
    by_library,
    float_literal,
    kernel,
    packs,
    widest_pack,
)
from trtconv.plugins.described.l2norm import OP_TYPE

_THREADS, _ROW_THREADS, _MOST_ROW_THREADS, _WARP = 512, 128, 512, 32
_MOST_ITEMS = 8
_ROW_ITEMS = (1, 2, 3, 4, 6, 8)
_SECTOR_BYTES = 32
# As in plugins_src/common/measured.h.
_ROW_PACKS = 4


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """Warps to a row where the axis is the last one, else a block to all channels of a run of positions.

    Raises UnsupportedError for an axis of a size that is not fixed.
    """
    x, scale = inputs
    axis = attributes["axis"]
    channels = x.dims[axis]
    if not isinstance(channels, int):
        raise by_library(OP_TYPE, f"axis {axis}, which is normalised, is dynamic")
    outer, inner = product(x.dims[:axis]), product(x.dims[axis + 1 :])
    macros: dict[str, object] = {
        "SCALE": ELEMENT_NUMBERS[scale.dtype],
        "EPSILON": float_literal(attributes["epsilon"]),
        "MODE": attributes["eps_mode"],
        "CHANNELS": channels,
    }
    if inner == 1:
        row_kernel = _rows(inputs, macros, outer, channels)
        if row_kernel is not None:
            return row_kernel
    else:
        lanes = choose_window(inputs, (outer, channels, inner), target)
        if lanes > 0:
            return _windows(inputs, macros, (outer, channels, inner), lanes)
    return _columns(inputs, macros, (outer, channels, inner), target)


def _rows(
    inputs: Sequence[EmbeddedInput], macros: dict[str, object], outer: Size, channels: int
) -> EmbeddedKernel | None:
    """The values of a row side by side; None for rows that are too long for a block's registers."""
    x, scale = inputs
    pack = widest_pack(channels, x.dtype)
    assert isinstance(pack, int)
    size = SIZES[x.dtype]
    packs = channels // pack
    team = min(max(1, -(-packs // (_WARP * _ROW_PACKS))), _MOST_ROW_THREADS // _WARP)
    items = -(-packs // (_WARP * team))
    if pack * size == VECTOR_BYTES and scale.dtype in (x.dtype, "float32") and items <= _MOST_ITEMS:
        threads = -(-_ROW_THREADS // (_WARP * team)) * _WARP * team
        macros |= {"TEAM": team, "THREADS": threads, "ITEMS": next(n for n in _ROW_ITEMS if items <= n)}
        rows = threads // (_WARP * team)
    elif packs <= _WARP * _MOST_ITEMS:
        threads, rows = _ROW_THREADS, _ROW_THREADS // _WARP
        macros |= {"ROWS": 1, "PACK": pack, "ITEMS": 2 if packs <= _WARP * 2 else _MOST_ITEMS}
    else:
        return None
    grid = ceil_div(outer, rows)
    return kernel(OP_TYPE, "l2norm", inputs, macros, grid=grid, block=threads, arguments=(("outer", outer),))


def choose_window(inputs: Sequence[EmbeddedInput], sizes: tuple[Size, int, Size], target: KernelTarget) -> int:
    """Granules side by side in a window, by the opt shape; 0 where a block's registers do not hold a tile, or granules
    do not fit x at every shape. The library's own choice also has clusters of blocks.
    """
    dtype, channels = inputs[0].dtype, sizes[1]
    opt, high = [i.opt for i in inputs], [i.high for i in inputs]
    if channels * SIZES[dtype] % VECTOR_BYTES or evaluate(sizes[2], high) > LARGEST // 2:
        return 0
    outer, inner = evaluate(sizes[0], opt), evaluate(sizes[2], opt)
    few = outer * evaluate(_window_cut(inner, dtype, 16)[0], []) < target.multiprocessors
    lanes = 8 if few or inner * SIZES[dtype] % VECTOR_BYTES == 0 or channels > _THREADS // 16 * _MOST_ITEMS else 16
    return lanes if channels <= _THREADS // lanes * _MOST_ITEMS else 0


def _window_cut(inner: Size, dtype: str, lanes: int) -> tuple[Size, Size, Size]:
    """Tiles of one outer index, positions of each, and whether a granule more is read at both ends (1 or 0)."""
    width = VECTOR_BYTES // SIZES[dtype]
    halo = 1 - divides(width, inner)
    positions = inner + halo * (width - 1)
    tiles = ceil_div(positions, lanes * width - halo * (2 * width))
    return tiles, round_up(ceil_div(positions, larger(tiles, 1)), width), halo


def _windows(
    inputs: Sequence[EmbeddedInput], macros: dict[str, object], sizes: tuple[Size, int, Size], lanes: int
) -> EmbeddedKernel:
    outer, channels, inner = sizes
    tiles, run, halo = _window_cut(inner, inputs[0].dtype, lanes)
    items = -(-channels // (_THREADS // lanes))
    macros |= {"LANES": lanes, "ITEMS": 2 if items <= 2 else 4 if items <= 4 else _MOST_ITEMS}
    arguments = (("outer", outer), ("inner", inner), ("tiles", tiles), ("run", run), ("halo", halo))
    return kernel(OP_TYPE, "l2norm", inputs, macros, grid=outer * tiles, block=_THREADS, arguments=arguments)


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
    arguments = (
        ("outer", outer),
        ("inner", inner),
        ("tiles", tiles),
        ("lanes_log2", log2 + (5 - log2) * reloaded),
        ("pack", pack),
    )
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
        lanes > 1
        and lanes // 2 * width * SIZES[dtype] >= _SECTOR_BYTES
        and outer * -(-inner // (lanes * width)) < 2 * target.multiprocessors
        and -(-channels // (_THREADS // lanes)) > 1
    ):
        lanes //= 2
    return lanes
