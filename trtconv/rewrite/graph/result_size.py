"""How large the result of a node will be, before it is computed: a Range of two numbers may fill the memory."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import onnx

from trtconv.rewrite.graph.index import Array

# 8 MiB of int64; what is folded or followed has a thousandth of it.
MAX_ELEMENTS = 1 << 20


def require_affordable(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> None:
    """Raise MemoryError for a node whose result would have over 2^20 elements."""
    count = result_elements(node, inputs)
    if count > MAX_ELEMENTS:
        raise MemoryError(f"{node.op_type} would make {count:.3g} elements")


def result_elements(node: onnx.NodeProto, inputs: Sequence[Array | None]) -> float:
    """An upper bound of the elements of a node's largest result; inf where the numbers are not sizes."""
    arrays = [a for a in inputs if a is not None]
    first = arrays[0] if arrays else np.zeros(0)
    numbers = [[float(v) for v in a.reshape(-1)] if a.size <= 64 and a.dtype.kind in "iuf" else [] for a in arrays]
    op = node.op_type
    if op == "Range" and len(arrays) == 3:
        start, limit, delta = (n[0] if n else math.nan for n in numbers)
        return _bounded(max((limit - start) / delta, 0.0) if delta else math.inf)
    if op == "ConstantOfShape":
        return _product(numbers[0]) if arrays else 1.0
    if op == "Expand" and len(arrays) > 1:
        return first.size * _product(numbers[1])
    if op == "Tile" and len(arrays) > 1:
        return first.size * _product(numbers[1])
    if op == "Pad" and len(arrays) > 1:
        return _product([d + sum(map(abs, numbers[1])) for d in first.shape])
    if op == "OneHot" and len(arrays) > 1:
        return first.size * _product(numbers[1])
    if op in ("Resize", "Upsample"):
        return max(first.size * _product(numbers[-1]), _product(numbers[-1]))
    if op == "NonZero":
        return float(first.size * max(first.ndim, 1))
    if op == "Concat":
        return float(sum(a.size for a in arrays))
    if op in ("MatMul", "Gemm", "Einsum", "Gather", "GatherND", "GatherElements"):
        return float(math.prod(max(a.size, 1) for a in arrays))
    # Elementwise operators: no axis of the broadcast is longer than the longest of its operands.
    rank = max((a.ndim for a in arrays), default=0)
    shapes = [(1,) * (rank - a.ndim) + a.shape for a in arrays]
    return float(math.prod(max(dims) for dims in zip(*shapes, strict=True)))


def _product(numbers: Sequence[float]) -> float:
    return _bounded(math.prod(max(abs(n), 1.0) for n in numbers))


def _bounded(number: float) -> float:
    return math.inf if math.isnan(number) else number
