"""The launch of the normalisation of images: a block to each, since a launch in an engine has no clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Size, evaluate
from trtconv.plugins.aot.launch import SIZES, VECTOR_BYTES, by_library, float_literal, kernel
from trtconv.plugins.described.group_norm import OP_TYPE

_THREADS = 1024


def output_dims(inputs: Sequence[tuple[Size, ...]], attributes: Mapping[str, Any]) -> tuple[tuple[Size, ...], ...]:
    """The dims of x."""
    del attributes
    return (inputs[0],)


def make_kernel(inputs: Sequence[EmbeddedInput], attributes: Mapping[str, Any], target: KernelTarget) -> EmbeddedKernel:
    """As the library's launch without clusters. Raises UnsupportedError where the channels are not fixed."""
    del target
    x, scale = inputs[:2]
    channels = scale.dims[0]
    if not isinstance(channels, int):
        raise by_library(OP_TYPE, "the channels are dynamic")
    batch, height, width = x.dims[:3]
    widest = VECTOR_BYTES // SIZES[x.dtype]
    macros = {
        "CHANNELS": channels, "PACK": widest if channels % widest == 0 else 1, "MIXED": int(attributes["mixed"]),
        "EPSILON": float_literal(attributes["epsilon"]),
    }  # fmt: skip
    largest = evaluate(height * width * channels, [x.high])
    if largest > LARGEST:
        raise by_library(OP_TYPE, f"an image has {largest} elements at the largest shape, of {LARGEST} at most")
    arguments = (("batch", batch), ("height", height), ("width", width))
    return kernel(OP_TYPE, "group_norm", inputs, macros, grid=batch, block=_THREADS, arguments=arguments)
