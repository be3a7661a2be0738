"""InstanceNorm's launch, for planes that one block holds on chip within the shared memory that every kernel may use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, divides, evaluate, larger, product, round_up, smaller
from trtconv.plugins.aot.launch import (
    ELEMENT_NUMBERS,
    SIZES,
    VECTOR_BYTES,
    by_library,
    float_literal,
    kernel,
    widest_pack,
)
from trtconv.plugins.described.instance_norm import OP_TYPE

_WARP, _WARP_THREADS, _WARP_ITEMS, _WIDEST = 32, 128, 8, 4
_EVEN_ITEMS = (1, 2, 4, 8)
_ITEMS, _MOST_THREADS = 8, 1024
_SLACK = 2 * VECTOR_BYTES
MOST_SHARED = 46 * 1024
"""Bytes of shared memory beside the kernel's own variables: 48 KiB need no permission by the host."""


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """A warp to a small plane of fixed size, else a block to a plane.

    Raises UnsupportedError for planes that do not fit 46 KiB: the library takes clusters or several launches for them.
    """
    x, scale, bias = inputs
    if scale.dtype != bias.dtype:
        raise by_library(OP_TYPE, f"scale is {scale.dtype} and bias is {bias.dtype}")
    planes, channels, area = product(x.dims[:2]), x.dims[1], product(x.dims[2:])
    macros: dict[str, object] = {
        "PARAMETER": ELEMENT_NUMBERS[scale.dtype],
        "EPSILON": float_literal(attributes["epsilon"]),
        "RELU": int(attributes["relu"]),
    }
    arguments = (("planes", planes), ("channels", channels), ("area", area))
    make = partial(kernel, OP_TYPE, "instance_norm", inputs)
    warps = ceil_div(planes, _WARP_THREADS // _WARP)
    even = even_items(area, x.dtype)
    if even:
        return make(macros | {"EVEN": 1, "ITEMS": even}, grid=warps, block=_WARP_THREADS, arguments=arguments)
    pack = widest_pack(area, x.dtype, _WIDEST)
    if isinstance(area, int) and isinstance(pack, int) and area <= _WARP * pack * _WARP_ITEMS:
        macros |= {"WARP": 1, "PACK": pack, "ITEMS": 2 if area <= _WARP * pack * 2 else _WARP_ITEMS}
        return make(macros, grid=warps, block=_WARP_THREADS, arguments=(*arguments, ("pack", pack)))
    shared, threads = shared_bytes(area, x.dtype), block_threads(area, x.dtype)
    most = evaluate(shared, [i.high for i in inputs])
    if most > MOST_SHARED:
        raise by_library(
            OP_TYPE, f"a plane takes {most} bytes of shared memory at the largest shape, of {MOST_SHARED} at most"
        )
    # Blocks stay where there are more planes than a multiprocessor's threads can take at once.
    resident = (_MOST_THREADS // threads) * target.multiprocessors
    return make(macros, grid=smaller(planes, resident), block=threads, shared=shared, arguments=arguments)


def even_items(area: Size, dtype: str) -> int:
    """Packs of 16 bytes in each lane of a warp that a plane of fixed size fills exactly; 0 for other planes."""
    fits = [n for n in _EVEN_ITEMS if isinstance(area, int) and area == _WARP * n * (VECTOR_BYTES // SIZES[dtype])]
    return fits[0] if fits else 0


def shared_bytes(area: Size, dtype: str) -> Size:
    """Shared memory for one plane at any alignment, in bytes."""
    values = round_up(area, VECTOR_BYTES // SIZES[dtype])
    return round_up(values * SIZES[dtype] + _SLACK, 128)


def block_threads(area: Size, dtype: str) -> Size:
    """Threads that hold a plane in their registers, whole warps."""
    per_granule = VECTOR_BYTES // SIZES[dtype]
    granules = ceil_div(area, per_granule) + (1 - divides(per_granule, area))
    return larger(64, round_up(ceil_div(granules, _ITEMS), _WARP))
