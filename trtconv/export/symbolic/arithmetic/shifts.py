"""Shifts of integers as products and quotients by powers of two: ONNX shifts unsigned ones alone.

Amounts below zero, or beyond the bits of the type, give what aten's kernels give (BinaryOpsKernel.cpp): nothing of a
shift to the left, the sign of one to the right.
"""

from __future__ import annotations

from typing import Any


def shift_right(func: Any, x: Any, bits: Any) -> Any:
    """x >> bits: the quotient by a power of two, rounded down."""
    import torch

    operands = _promoted(x, bits)
    if operands is None:
        return NotImplemented
    x, bits = operands
    limits = torch.iinfo(x.dtype)
    most = limits.bits - (limits.min < 0)
    if isinstance(bits, int):
        bits = bits if 0 <= bits < most else most
    else:
        bits = torch.where(torch.logical_or(bits < 0, bits >= most), most, bits)
    shifted = _wide(x)
    for power in _powers(bits, shifted.dtype):
        shifted = torch.floor_divide(shifted, power)
    return shifted.to(x.dtype)


def shift_left(func: Any, x: Any, bits: Any) -> Any:
    """x << bits: the product with a power of two, without the bits that leave the type."""
    import torch

    operands = _promoted(x, bits)
    if operands is None:
        return NotImplemented
    x, bits = operands
    width = torch.iinfo(x.dtype).bits
    if isinstance(bits, int):
        if not 0 <= bits < width:
            return torch.zeros_like(x)
        inside: Any = None
    else:
        inside = torch.logical_and(bits >= 0, bits < width)
        bits = torch.where(inside, bits, 0)
    shifted = _wide(x)
    for power in _powers(bits, shifted.dtype):
        shifted = shifted * power
    shifted = shifted.to(x.dtype)
    return shifted if inside is None else torch.where(inside, shifted, torch.zeros_like(shifted))


def _promoted(x: Any, bits: Any) -> tuple[Any, Any] | None:
    """Both in their common type, the amount as a number where it is one; None for what is no shift of integers."""
    import torch

    if not isinstance(x, torch.Tensor):
        if not isinstance(bits, torch.Tensor) or not isinstance(x, int):
            return None
        x = torch.full((), x, dtype=torch.result_type(x, bits), device=bits.device)
    if not isinstance(bits, torch.Tensor):
        bits = torch.full((), bits, dtype=x.dtype, device=x.device) if isinstance(bits, torch.SymInt) else bits
    kind = torch.result_type(x, bits)
    if kind.is_floating_point or kind == torch.bool:
        return None
    return x.to(kind), bits.to(kind) if isinstance(bits, torch.Tensor) else bits


def _wide(x: Any) -> Any:
    """x in a type for whose products and quotients every runtime has an operator."""
    import torch

    return x.to(torch.int32) if x.dtype in (torch.uint8, torch.int8, torch.int16) else x


def _powers(bits: Any, dtype: Any) -> tuple[Any, Any]:
    """Two powers of two whose product is 2**bits: the type has none for its last bit."""
    import torch

    most = torch.iinfo(dtype).bits - 2
    if isinstance(bits, int):
        return 2 ** min(bits, most), 2 ** max(bits - most, 0)
    table = torch.tensor([2**k for k in range(most + 1)], dtype=dtype, device=bits.device)
    bits = bits.to(torch.int64)
    first = bits.clamp(max=most)
    return table[first], table[bits - first]
