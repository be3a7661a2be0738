"""Bit operations on integers as arithmetic: by a constant mask in runs of ones, of two values bit by bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtconv.rewrite.graph.builder import Builder
from trtconv.rewrite.graph.index import Array

INT32, INT64 = 6, 7
# Bits that are summed at a time: ONNX Runtime sums int64 in double, which holds 53 bits, TensorRT 8.6 sums int32 in
# FP32, which holds 24 (measured on an H200: ReduceSum of 30-bit numbers is off in the last 6).
PIECE = 16
# ONNX element type: number of bits, signed.
WIDTHS = {3: (8, True), 5: (16, True), 6: (32, True), 7: (64, True), 2: (8, False), 4: (16, False), 12: (32, False)}


@dataclass(frozen=True)
class Kind:
    """An integer type and the one that it is computed in: TensorRT computes with int32 and int64 only."""

    dtype: int
    work: int
    low: int
    signed: bool

    @property
    def least(self) -> int:
        """What the sign bit counts."""
        return -(1 << self.low)


def kind_of(dtype: int, generation: int) -> Kind | None:
    """How to compute with this type; None for uint64 and what is no integer. 8.6 takes int64 for int32."""
    if dtype not in WIDTHS or (dtype == 12 and generation == 8):
        return None
    bits, signed = WIDTHS[dtype]
    if generation == 8:
        bits = min(bits, 32)
    work = INT64 if dtype in (INT64, 12) else INT32
    return Kind(dtype, work, bits - 1 if signed else bits, signed)


def widened(b: Builder, value: str, kind: Kind) -> str:
    """The value in the type that is computed in."""
    return value if kind.dtype == kind.work else b.cast(value, kind.work)


def narrowed(b: Builder, value: str, kind: Kind) -> str:
    """Back to the type of the graph."""
    return value if kind.dtype == kind.work else b.cast(value, kind.dtype)


def number(b: Builder, value: int, kind: Kind) -> str:
    """A constant of the type that is computed in."""
    return b.const(np.asarray(value, np.int64 if kind.work == INT64 else np.int32))


def and_mask(b: Builder, x: str, mask: int, kind: Kind) -> str:
    """x & mask: the remainders by powers of two at both ends of each run of ones. Exact for negative numbers too."""
    if mask < 0:
        return b.op("Sub", x, and_mask(b, x, ~mask, kind)) if mask != -1 else b.op("Add", x, number(b, 0, kind))
    total = ""
    for first, last in runs(mask):
        part = _below(b, x, last, kind)
        if first:
            part = b.op("Sub", part, _below(b, x, first, kind))
        total = b.op("Add", total, part) if total else part
    return total or b.op("Mul", x, number(b, 0, kind))


def runs(mask: int) -> list[tuple[int, int]]:
    """The runs of ones of a positive mask, as first bit and the bit after the last."""
    found, place = [], 0
    while mask >> place:
        if mask >> place & 1:
            first = place
            while mask >> place & 1:
                place += 1
            found.append((first, place))
        place += 1
    return found


def _below(b: Builder, x: str, bit: int, kind: Kind) -> str:
    """x modulo 2 ** bit, between 0 and that."""
    if bit == kind.low:
        return _without_sign(b, x, kind) if kind.signed else x
    return b.op("Mod", x, number(b, 1 << bit, kind))


def _without_sign(b: Builder, x: str, kind: Kind) -> str:
    negative = b.op("Less", x, number(b, 0, kind))
    return b.op("Where", negative, b.op("Sub", x, number(b, kind.least, kind)), x)


def combined_with_mask(b: Builder, op: str, x: str, mask: int, kind: Kind) -> str:
    """x op mask for BitwiseAnd, BitwiseOr and BitwiseXor; no step leaves the range of the type."""
    if op == "BitwiseAnd":
        return and_mask(b, x, mask, kind)
    top = -1 if kind.signed else (1 << kind.low) - 1
    outside = and_mask(b, x, top & ~mask if not kind.signed else ~mask, kind)
    own = number(b, mask, kind)
    if op == "BitwiseXor":
        own = b.op("Sub", own, and_mask(b, x, mask, kind))
    return b.op("Add", outside, own)


def combined(b: Builder, op: str, left: str, right: str, kind: Kind) -> str:
    """Two values bit by bit, PIECE bits at a time: [.., bits] each, combined and summed with the value of each bit."""
    bits = kind.low + kind.signed
    pieces = [_pieces(b, value, bits, kind) for value in (left, right)]
    total = ""
    for place, pair in enumerate(zip(*pieces, strict=True)):
        first = place * PIECE
        own = min(PIECE, bits - first)
        part = _summed(b, op, pair[0], pair[1], kind, own)
        if kind.signed and first + own == bits:
            part = _with_sign(b, part, own, kind)
        part = b.op("Mul", part, number(b, 1 << first, kind)) if first else part
        total = b.op("Add", part, total) if total else part
    return total


def _pieces(b: Builder, value: str, bits: int, kind: Kind) -> list[str]:
    """The bits of a value from the lowest on, each piece between 0 and its power of two; two's complement below zero.

    TensorRT 8.6 may compute a fused chain of int32 in FP32 (measured on an H200): nothing here is larger than `value`.
    """
    found = []
    for first in range(0, bits, PIECE):
        size = number(b, 1 << min(PIECE, bits - first), kind)
        piece = b.op("Mod", value, size)
        found.append(piece)
        if first + PIECE < bits:
            value = b.op("Div", b.op("Sub", value, piece), size)
    return found


def _with_sign(b: Builder, piece: str, bits: int, kind: Kind) -> str:
    """The highest piece as a signed number."""
    positive = b.op("Less", piece, number(b, 1 << (bits - 1), kind))
    return b.op("Where", positive, piece, b.op("Sub", piece, number(b, 1 << bits, kind)))


def _summed(b: Builder, op: str, left: str, right: str, kind: Kind, bits: int) -> str:
    """The lowest bits of two values that are not negative, combined."""
    powers = b.const(np.asarray([1 << i for i in range(bits)], np.int64 if kind.work == INT64 else np.int32))
    two = number(b, 2, kind)
    planes = [b.op("Mod", b.op("Div", b.unsqueeze(value, -1), powers), two) for value in (left, right)]
    if op == "BitwiseAnd":
        both = b.op("Mul", *planes)
    elif op == "BitwiseOr":
        both = b.op("Max", *planes)
    else:
        both = b.op("Abs", b.op("Sub", *planes))
    return b.reduce("ReduceSum", b.op("Mul", both, powers), [-1], keepdims=False)


def shifted(b: Builder, x: str, factor: str, left: bool, kind: Kind) -> str:
    """An unsigned value shifted by the power of two `factor`; what leaves the type at the top is dropped."""
    if not left:
        return b.op("Div", x, factor)
    room = b.op("Div", number(b, 1 << kind.low, kind), factor)
    return b.op("Mul", b.op("Mod", x, room), factor)


def factors(places: Array, kind: Kind) -> Array:
    """2 ** places, and 2 ** bits where a shift takes everything out."""
    capped = np.minimum(places.astype(np.int64), kind.low)
    return np.asarray(1 << capped, np.int64 if kind.work == INT64 else np.int32)
