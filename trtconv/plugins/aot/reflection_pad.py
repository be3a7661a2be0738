"""ReflectionPad's launch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, ceil_div, evaluate, product
from trtconv.plugins.aot.launch import SIZES, VECTOR_BYTES, by_library, kernel
from trtconv.plugins.described.reflection_pad import OP_TYPE

_THREADS, _ITEMS = 256, 2
_MOST_ELEMENTS = LARGEST - 65536


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The last two axes grow by their pads."""
    (x,) = inputs
    top, left, bottom, right = attributes["pads"]
    return ((*x[:-2], x[-2] + (top + bottom), x[-1] + (left + right)),)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """A thread to two granules of 16 bytes of y. Raises UnsupportedError for 2^31 - 65536 elements and more."""
    del target
    (x,) = inputs
    top, left, bottom, right = attributes["pads"]
    elements = product(output_dims([x.dims], attributes)[0])
    most = evaluate(elements, [x.high])
    if most > _MOST_ELEMENTS:
        raise by_library(OP_TYPE, f"its result has {most} elements at the largest shape, of {_MOST_ELEMENTS} at most")
    height, width = x.dims[-2:]
    macros = {"TOP": top, "LEFT": left, "BOTTOM": bottom, "RIGHT": right}
    macros |= {k: v for k, v in (("HEIGHT", height), ("WIDTH", width)) if isinstance(v, int)}
    each = _THREADS * _ITEMS * (VECTOR_BYTES // SIZES[x.dtype])
    arguments = (("planes", product(x.dims[:-2])), ("height", height), ("width", width))
    return kernel(
        OP_TYPE, "reflection_pad", inputs, macros, grid=ceil_div(elements, each), block=_THREADS, arguments=arguments
    )
