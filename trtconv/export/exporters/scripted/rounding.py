"""How exactly FP32 has what a script computes in numbers: Python's are FP64, and a file's are FP32.

A number that is rounded once on its way to a tensor is what torch computes with; one that is rounded twice is not, and
where it is compared or rounded further the last bit decides.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from enum import IntEnum
from typing import Any

from trtconv.export.sizes.float_sizes import SHORT

NUMBERS = frozenset(("IntType", "FloatType", "BoolType", "NumberType"))
# Operators of numbers that round once what they compute of exact ones.
ONCE = frozenset(f"aten::{name}" for name in ("add", "sub", "mul", "div", "truediv", "sqrt"))
KEEPING = frozenset((
    "aten::neg", "aten::abs", "aten::Float", "aten::FloatImplicit", "prim::min", "prim::max", "prim::abs",
))  # fmt: skip
# A last bit decides what these give.
CUTTING = frozenset(f"aten::{name}" for name in ("round", "floordiv", "floor_divide", "remainder", "fmod", "mod"))


class Rounding(IntEnum):
    """How far FP32's form of a number is from Python's.

    SHORT is exact in a few bits, as whole numbers and 0.25 are; EXACT in FP32's; ONCE is the FP32 number next to
    Python's; TWICE may be another one.
    """

    SHORT = 0
    EXACT = 1
    ONCE = 2
    TWICE = 3


def is_number(value: Any) -> bool:
    """True for an int, float or bool of Python's; no tensor."""
    return value.type().kind() in NUMBERS


def is_pure(node: Any) -> bool:
    """True for an operator from numbers to numbers, or an `if` of nothing else."""
    inputs, outputs = list(node.inputs()), list(node.outputs())
    if node.kind() == "prim::If":
        inner = [n for block in node.blocks() for n in block.nodes()]
        return bool(outputs) and all(map(is_number, outputs)) and all(is_constant(n) or is_pure(n) for n in inner)
    computes = node.kind().startswith("aten::") or node.kind() in ("prim::min", "prim::max", "prim::abs")
    return bool(computes and inputs and outputs) and all(is_number(v) for v in (*inputs, *outputs))


def is_constant(node: Any) -> bool:
    """True for a constant, or a number that the module has as an attribute."""
    kind = node.kind()
    return bool(kind == "prim::Constant" or (kind == "prim::GetAttr" and not _is_set(node)))


def _is_set(node: Any) -> bool:
    """True where a run may give the attribute another value."""
    (owner,) = node.inputs()
    sets = (u.user for u in owner.uses() if u.user.kind() == "prim::SetAttr")
    return any(setter.s("name") == node.s("name") for setter in sets)


def walk(block: Any) -> Iterator[Any]:
    """The nodes of a graph or block with those inside of them, in order."""
    for node in block.nodes():
        yield node
        for inner in node.blocks():
            yield from walk(inner)


def roundings(graph: Any) -> Mapping[int, Rounding]:
    """By value (`unique()`) how exact the numbers of an inlined graph are; SHORT for what is not in it."""
    levels: dict[int, Rounding] = {}
    while True:
        before = dict(levels)
        for node in walk(graph):
            for output, level in zip(node.outputs(), _of_outputs(node, levels), strict=True):
                if is_number(output):
                    levels[output.unique()] = level
        if levels == before:
            return levels


def _of_outputs(node: Any, levels: dict[int, Rounding]) -> Sequence[Rounding]:
    def of(values: Sequence[Any]) -> Rounding:
        return max((levels.get(v.unique(), Rounding.SHORT) for v in values), default=Rounding.SHORT)

    outputs = list(node.outputs())
    if node.kind() == "prim::If":
        return [of(branches) for branches in zip(*(list(b.outputs()) for b in node.blocks()), strict=True)]
    if node.kind() == "prim::Loop":
        (body,) = node.blocks()
        starts, states, ends = list(node.inputs())[2:], list(body.inputs())[1:], list(body.outputs())[1:]
        results = [of(pair) for pair in zip(starts, ends, strict=True)]
        levels.update({s.unique(): r for s, r in zip(states, results, strict=True) if is_number(s)})
        return results
    return [_of_result(node, output, levels) for output in outputs]


def _of_result(node: Any, output: Any, levels: Mapping[int, Rounding]) -> Rounding:
    kind, floating = node.kind(), output.type().kind() in ("FloatType", "NumberType")
    if kind == "prim::Constant":
        return of_constant(output.toIValue())
    inputs = list(node.inputs())
    if not all(map(is_number, inputs)):
        # An element of a tensor is exact in FP32, one of a table was rounded.
        rounded = kind == "prim::GetAttr" or (kind == "aten::Float" and _is_of_constant(inputs[0].node()))
        return Rounding(int(floating) + int(floating and rounded))
    ranks = [levels.get(i.unique(), Rounding.SHORT) for i in inputs]
    worst = max(ranks, default=Rounding.SHORT)
    if not floating or kind in CUTTING:
        cuts = any(i.type().kind() in ("FloatType", "NumberType") for i in inputs)
        return (Rounding(int(floating)) if _decides_alike(ranks) else Rounding.TWICE) if cuts else worst
    if kind in KEEPING:
        return worst
    if worst <= Rounding.EXACT and kind in ONCE:
        exact = kind in ("aten::add", "aten::sub", "aten::mul") or _is_power_of_two(inputs[-1])
        return Rounding.EXACT if exact and worst == Rounding.SHORT and kind != "aten::sqrt" else Rounding.ONCE
    return Rounding.TWICE


def _is_of_constant(node: Any) -> bool:
    while node.kind() == "aten::select":
        node = next(iter(node.inputs())).node()
    return bool(node.kind() == "prim::Constant")


def of_constant(value: Any) -> Rounding:
    """How exactly FP32 has a constant."""
    import struct

    if not isinstance(value, float) or not math.isfinite(value):
        return Rounding.SHORT
    if math.frexp(value)[0] * 2**SHORT % 1 == 0:
        return Rounding.SHORT
    try:
        same = struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        same = False
    return Rounding.EXACT if same else Rounding.ONCE


def _decides_alike(ranks: Sequence[Rounding]) -> bool:
    """True where FP32 compares or cuts numbers as FP64 does.

    Rounding once keeps the order to a number of few bits: a quotient of sizes is no neighbour of 0.5 unless it is 0.5.
    """
    *others, worst = sorted(ranks)
    return worst <= Rounding.EXACT or (worst == Rounding.ONCE and all(r == Rounding.SHORT for r in others))


def _is_power_of_two(value: Any) -> bool:
    constant = value.toIValue()
    return isinstance(constant, (int, float)) and constant > 0 and math.frexp(constant)[0] == 0.5
