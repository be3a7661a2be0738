"""What the launches of all plugins share: types in C++, pack widths, limits of 32-bit arguments, kernel names."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping, Sequence

from trtconv.core.embedded import LARGEST, EmbeddedInput, EmbeddedKernel, KernelSource
from trtconv.core.errors import UnsupportedError
from trtconv.core.sizes import Size, divides, evaluate, larger
from trtconv.plugins.libraries.library import source_root

CPP_TYPES = {"float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16"}
ELEMENT_NUMBERS = {"float32": 0, "float16": 1, "bfloat16": 2}
"""As in plugins_src/common/element.h."""
SIZES = {"float32": 4, "float16": 2, "bfloat16": 2}
"""Bytes of an element."""
VECTOR_BYTES = 16
"""The widest access of a thread."""

_HEADERS = ("aot/nvrtc", "aot/device", ".")


def kernel(
    plugin: str,
    folder: str,
    inputs: Sequence[EmbeddedInput],
    macros: Mapping[str, object],
    *,
    grid: Size,
    block: Size,
    arguments: Sequence[tuple[str, Size]],
    shared: Size = 0,
) -> EmbeddedKernel:
    """The launch of plugins_src/aot/`folder`.cu. Raises UnsupportedError where a number does not fit 32 bits.

    The entry's name tells kernels with other macros apart, so that one engine can hold several.
    """
    highs = [i.high for i in inputs]
    for name, size in (*arguments, ("grid", grid)):
        value = evaluate(size, highs)
        if value > LARGEST:
            raise by_library(plugin, f"{name} is {value} at the largest shape, and a launch has 32-bit numbers")
    root = source_root() / "plugins_src"
    definitions = tuple((f"TRTCONV_{k}", str(v)) for k, v in (("ELEMENT", CPP_TYPES[inputs[0].dtype]), *macros.items()))
    digest = hashlib.sha256(repr(definitions).encode()).hexdigest()[:12]
    entry = f"trtconv_{folder}_{digest}"
    source = KernelSource(
        root / "aot" / f"{folder}.cu", tuple(root / h for h in _HEADERS), (("TRTCONV_ENTRY", entry), *definitions)
    )
    # An empty tensor still launches, and the kernel does nothing.
    return EmbeddedKernel(entry, source, larger(grid, 1), block, shared, tuple(arguments))


def by_library(plugin: str, why: str) -> UnsupportedError:
    """The error for what one kernel with 32-bit arguments cannot do."""
    return UnsupportedError(
        f"{plugin} cannot lie in the engine: {why}",
        hint="leave embed_plugins out and use the plugin library (`trtconv plugins build`)",
    )


def packs(size: Size, dtype: str) -> list[tuple[int, Size]]:
    """(width, 1 or 0) for every pack width, 1 where accesses of that width at multiples of `size` are aligned."""
    widths = [w for w in (1, 2, 4, 8) if w * SIZES[dtype] <= VECTOR_BYTES]
    return [(w, divides(w, size)) for w in widths]


def widest_pack(size: Size, dtype: str, most: int = VECTOR_BYTES) -> Size:
    """How many elements one access moves in rows of `size` elements, at most `most`."""
    result: Size = 1
    for width, fits in packs(size, dtype):
        result = larger(result, fits * width) if width <= most else result
    return result


def float_literal(value: float) -> str:
    """A float32 in C++, exactly."""
    return float.hex(struct.unpack("f", struct.pack("f", value))[0]) + "F"
