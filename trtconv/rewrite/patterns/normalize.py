"""The arithmetic that all normalizations share: (x - mean) / sqrt(variance + epsilon), in FP32 when asked."""

from __future__ import annotations

from collections.abc import Sequence

from trtconv.rewrite.graph.builder import Builder


def normalized(b: Builder, x: str, axes: Sequence[int], epsilon: float, dtype: int, compute: int) -> str:
    """Normalize over `axes`; the statistics are made in `compute`, the result has `dtype` (ONNX element types)."""
    wide = x if dtype == compute else b.cast(x, compute)
    centred = b.op("Sub", wide, b.reduce("ReduceMean", wide, axes))
    variance = b.reduce("ReduceMean", b.op("Mul", centred, centred), axes)
    root = b.op("Sqrt", b.op("Add", variance, b.scalar(epsilon, dtype=compute)))
    result = b.op("Div", centred, root)
    return result if dtype == compute else b.cast(result, dtype)


def root_mean_square(b: Builder, x: str, axes: Sequence[int], epsilon: float, dtype: int, compute: int) -> str:
    """x / sqrt(mean(x * x) + epsilon)."""
    wide = x if dtype == compute else b.cast(x, compute)
    square = b.reduce("ReduceMean", b.op("Mul", wide, wide), axes)
    result = b.op("Div", wide, b.op("Sqrt", b.op("Add", square, b.scalar(epsilon, dtype=compute))))
    return result if dtype == compute else b.cast(result, dtype)
