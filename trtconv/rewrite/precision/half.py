"""The two half formats and the conversion of a weight into one of them, with a count of what does not fit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import numpy_helper

from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import HALF_NAMES, HALVES
from trtconv.rewrite.graph.index import Array

FLOAT = onnx.TensorProto.FLOAT
# How much of a tensor is converted at a time: temporary arrays stay small beside the model.
CHUNK = 1 << 20


@dataclass(frozen=True)
class HalfFormat:
    """A 16-bit format: ONNX element type, largest finite value, smallest normal value, smallest value over zero.

    IEEE 754 binary16 has 5 bits of exponent and 10 of fraction; bfloat16 has the 8 exponent bits of FP32 and 7 of
    fraction.
    """

    name: str
    onnx: int
    type_text: str
    largest: float
    normal: float
    least: float


FORMATS = tuple(HalfFormat(p.name, p.onnx, p.onnx_type, p.largest, p.normal, p.least) for p in HALVES)


def half_format(precision: str) -> HalfFormat:
    """The format called `fp16` or `bf16`. Raises InvalidRequestError for others."""
    for entry in FORMATS:
        if entry.name == precision:
            return entry
    raise InvalidRequestError(f"a graph cannot be typed as '{precision}'", hint="one of " + ", ".join(HALF_NAMES))


@dataclass(frozen=True)
class WeightCounts:
    """What became of the weights: elements over the largest value (clamped), that became zero, that lost bits.

    `subnormal` are those that the format holds with fewer bits than usual. NaN and infinities pass unchanged and are
    not counted.
    """

    tensors: int = 0
    elements: int = 0
    overflowed: int = 0
    underflowed: int = 0
    subnormal: int = 0

    def __add__(self, other: WeightCounts) -> WeightCounts:
        return WeightCounts(*(a + b for a, b in zip(self._all(), other._all(), strict=True)))

    def _all(self) -> tuple[int, ...]:
        return self.tensors, self.elements, self.overflowed, self.underflowed, self.subnormal


def total(counts: Iterable[WeightCounts]) -> WeightCounts:
    """The sum of counts."""
    return sum(counts, WeightCounts())


def values_of(tensor: onnx.TensorProto) -> Array:
    """The values of an FP32 tensor as a flat array. Raises InvalidRequestError when they are still on disk."""
    if tensor.data_location == onnx.TensorProto.EXTERNAL:
        raise InvalidRequestError(
            f"the values of weight '{tensor.name}' are on disk, and typing the graph needs them",
            hint="load the model with its weights",
        )
    if tensor.raw_data:
        return np.frombuffer(tensor.raw_data, "<f4")
    values: Array = numpy_helper.to_array(tensor).reshape(-1)
    return values


def to_half(tensor: onnx.TensorProto, to: HalfFormat, name: str) -> tuple[onnx.TensorProto, WeightCounts]:
    """The tensor in half precision, rounded to nearest even; finite values are clamped to the largest one."""
    source = values_of(tensor)
    parts, counts = [], WeightCounts(1, source.size)
    for start in range(0, source.size, CHUNK):
        part = source[start : start + CHUNK]
        half_bytes, part_counts = _convert(part, to)
        parts.append(half_bytes)
        counts += part_counts
    result = onnx.TensorProto(name=name, data_type=to.onnx, doc_string=tensor.doc_string, raw_data=b"".join(parts))
    result.dims.extend(tensor.dims)
    return result, counts


def _convert(part: Array, to: HalfFormat) -> tuple[bytes, WeightCounts]:
    size = np.abs(part)
    finite = np.isfinite(part)
    over = finite & (size > to.largest)
    clamped = np.where(over, np.copysign(np.float32(to.largest), part), part)
    if to.onnx == onnx.TensorProto.FLOAT16:
        with np.errstate(under="ignore", over="ignore"):
            bits = clamped.astype("<f2").view("<u2")
    else:
        bits = _bfloat16_bits(clamped)
    zero = (size > 0) & ((bits & 0x7FFF) == 0)
    small = (size > 0) & (size < to.normal) & ~zero
    return bits.tobytes(), WeightCounts(0, 0, int(over.sum()), int(zero.sum()), int(small.sum()))


def _bfloat16_bits(part: Array) -> Array:
    """The upper halves of the FP32 bits, rounded to nearest even; a NaN stays one."""
    bits = np.ascontiguousarray(part, np.float32).view(np.uint32)
    with np.errstate(over="ignore"):
        rounded = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) >> 16
    return np.where(np.isnan(part), (bits >> 16) | 0x40, rounded).astype("<u2")


def extreme(tensor: onnx.TensorProto) -> float:
    """The largest finite magnitude in an FP32 tensor; 0 for an empty one."""
    top = 0.0
    source = values_of(tensor)
    for start in range(0, source.size, CHUNK):
        part = np.abs(source[start : start + CHUNK])
        top = max(top, float(np.max(part, initial=0.0, where=np.isfinite(part))))
    return top
