"""Bit operations on integers as arithmetic: by a constant mask in runs of ones, of two values bit by bit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

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
    """How to compute with this type; None for uint64 and what is not an integer. 8.6 takes int64 for int32."""
    if dtype not in WIDTHS or (dtype == 12 and generation == 8):
        return None
    bits, signed = WIDTHS[dtype]
    if generation == 8:
        bits = min(bits, 32)
    work = INT64 if dtype in (INT64, 12) else INT32
    return Kind(dtype, work, bits - 1 if signed else bits, signed)


def widen(g: Replacement, value: Value, kind: Kind) -> Value:
    """The value in the type that is computed in."""
    return value if kind.dtype == kind.work else g.cast(value, kind.work)


def narrow(g: Replacement, value: Value, kind: Kind) -> Value:
    """Back to the type of the graph."""
    return value if kind.dtype == kind.work else g.cast(value, kind.dtype)


def number(g: Replacement, value: int, kind: Kind) -> Value:
    """A constant of the type that is computed in."""
    return g.const(np.asarray(value, np.int64 if kind.work == INT64 else np.int32))


def and_mask(g: Replacement, x: Value, mask: int, kind: Kind) -> Value:
    """x & mask: the remainders by powers of two at both ends of each run of ones. Exact for negative numbers too."""
    if mask < 0:
        return g.sub(x, and_mask(g, x, ~mask, kind)) if mask != -1 else g.add(x, number(g, 0, kind))
    total = ""
    for first, last in runs(mask):
        part = _below(g, x, last, kind)
        if first:
            part = g.sub(part, _below(g, x, first, kind))
        total = g.add(total, part) if total else part
    return total or g.mul(x, number(g, 0, kind))


def runs(mask: int) -> list[tuple[int, int]]:
    """The runs of ones of a positive mask, as first bit and the bit after the last."""
    bit_runs, bit = [], 0
    while mask >> bit:
        if mask >> bit & 1:
            first = bit
            while mask >> bit & 1:
                bit += 1
            bit_runs.append((first, bit))
        bit += 1
    return bit_runs


def _below(g: Replacement, x: Value, bit: int, kind: Kind) -> Value:
    """x modulo 2 ** bit, between 0 and that."""
    if bit == kind.low:
        return _without_sign(g, x, kind) if kind.signed else x
    return g.mod(x, number(g, 1 << bit, kind))


def _without_sign(g: Replacement, x: Value, kind: Kind) -> Value:
    negative = g.less(x, number(g, 0, kind))
    return g.where(negative, g.sub(x, number(g, kind.least, kind)), x)


def combine_with_mask(g: Replacement, op: str, x: Value, mask: int, kind: Kind) -> Value:
    """x op mask for BitwiseAnd, BitwiseOr and BitwiseXor; no step leaves the range of the type."""
    if op == "BitwiseAnd":
        return and_mask(g, x, mask, kind)
    top = -1 if kind.signed else (1 << kind.low) - 1
    outside = and_mask(g, x, top & ~mask if not kind.signed else ~mask, kind)
    own = number(g, mask, kind)
    if op == "BitwiseXor":
        own = g.sub(own, and_mask(g, x, mask, kind))
    return g.add(outside, own)


def combine(g: Replacement, op: str, left: Value, right: Value, kind: Kind) -> Value:
    """Two values bit by bit, PIECE bits at a time: [.., bits] each, combined and summed with the value of each bit."""
    bits = kind.low + kind.signed
    pieces = [_pieces(g, value, bits, kind) for value in (left, right)]
    total = ""
    for index, pair in enumerate(zip(*pieces, strict=True)):
        first = index * PIECE
        own = min(PIECE, bits - first)
        part = _summed(g, op, pair[0], pair[1], kind, own)
        if kind.signed and first + own == bits:
            part = _with_sign(g, part, own, kind)
        part = g.mul(part, number(g, 1 << first, kind)) if first else part
        total = g.add(part, total) if total else part
    return total


def _pieces(g: Replacement, value: Value, bits: int, kind: Kind) -> list[Value]:
    """The bits of a value from the lowest on, each piece between 0 and its power of two; two's complement below zero.

    TensorRT 8.6 may compute a fused chain of int32 in FP32 (measured on an H200): nothing here is larger than `value`.
    """
    pieces = []
    for first in range(0, bits, PIECE):
        size = number(g, 1 << min(PIECE, bits - first), kind)
        piece = g.mod(value, size)
        pieces.append(piece)
        if first + PIECE < bits:
            value = g.div(g.sub(value, piece), size)
    return pieces


def _with_sign(g: Replacement, piece: Value, bits: int, kind: Kind) -> Value:
    """The highest piece as a signed number."""
    positive = g.less(piece, number(g, 1 << (bits - 1), kind))
    return g.where(positive, piece, g.sub(piece, number(g, 1 << bits, kind)))


def _summed(g: Replacement, op: str, left: Value, right: Value, kind: Kind, bits: int) -> Value:
    """The lowest bits of two values that are not negative, combined."""
    powers = g.const(np.asarray([1 << i for i in range(bits)], np.int64 if kind.work == INT64 else np.int32))
    two = number(g, 2, kind)
    planes = [g.mod(g.div(g.unsqueeze(value, -1), powers), two) for value in (left, right)]
    if op == "BitwiseAnd":
        both = g.mul(*planes)
    elif op == "BitwiseOr":
        both = g.maximum(*planes)
    else:
        both = g.absolute(g.sub(*planes))
    return g.reduce("ReduceSum", g.mul(both, powers), [-1], keepdims=False)


def shift(g: Replacement, x: Value, factor: Value, left: bool, kind: Kind) -> Value:
    """An unsigned value shifted by the power of two `factor`; what leaves the type at the top is dropped."""
    if not left:
        return g.div(x, factor)
    room = g.div(number(g, 1 << kind.low, kind), factor)
    return g.mul(g.mod(x, room), factor)


def factors(places: Array, kind: Kind) -> Array:
    """2 ** places, and 2 ** bits where a shift takes everything out."""
    capped = np.minimum(places.astype(np.int64), kind.low)
    return np.asarray(1 << capped, np.int64 if kind.work == INT64 else np.int32)
