"""DFT as products with matrices of cosines and sines: no parser has it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.rewrite.engine.rule import Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, INT64, Value
from trtconv.rewrite.graph.replacement import Replacement

# The matrices have length * length elements: beyond this they cost more than what is around.
LONGEST = 4096


@dataclass(frozen=True)
class Transform:
    """One DFT; `length` is None where it is the size of an axis that moves. `is_fitted`: the axis has another size."""

    rank: int
    axis: int
    length: int | None
    is_fitted: bool
    is_complex: bool
    inverse: bool
    onesided: bool


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match FP32 along one axis whose length is that of the value, or a constant."""
    dims = graph.dims(node.inputs[0])
    if dims is None or dims[-1] not in (1, 2) or graph.dtype(node.inputs[0]) != FLOAT:
        return Skip("it is not known whether the values are real or complex, or they are not FP32")
    axis = node.attr("axis", 1) if graph.opset < 20 else (graph.scalar(node.input(2)) if node.input(2) else -2)
    if axis is None:
        return Skip("the axis is computed while the model runs")
    axis = int(axis) % len(dims)
    fixed = graph.scalar(node.input(1)) if node.input(1) else dims[axis]
    if node.input(1) and fixed is None:
        return Skip("the length is computed while the model runs")
    length = int(fixed) if isinstance(fixed, int | float) else None
    longest = length or (graph.dim_range(dims[axis]) or (0, 0))[1]
    if longest > LONGEST:
        return Skip(f"its matrices would have {longest} x {longest} elements")
    inverse, onesided = bool(node.attr("inverse", 0)), bool(node.attr("onesided", 0))
    if inverse and onesided:
        return Skip("an inverse of one side, which evaluators treat in different ways")
    is_fitted = bool(node.input(1)) and length != dims[axis]
    transform = Transform(len(dims), axis, length, is_fitted, dims[-1] == 2, inverse, onesided)
    return Found((node,), partial(_build, node=node, transform=transform))


def _build(g: Replacement, node: Node, transform: Transform) -> Value:
    value, last = _fitted(g, node.inputs[0], transform), transform.rank - 1
    cosine, sine = _matrices(g, value, transform)
    # The axis of the transform goes to the end, and the one of real and imaginary parts away.
    order = [a for a in range(last) if a != transform.axis] + [transform.axis]
    parts = [
        g.transpose(g.gather(value, g.scalar(i, dtype=INT64), axis=last), *order)
        for i in range(1 + transform.is_complex)
    ]
    real, imaginary = g.matmul(parts[0], cosine), g.matmul(parts[0], sine)
    if transform.is_complex:
        real = g.sub(real, g.matmul(parts[1], sine))
        imaginary = g.add(imaginary, g.matmul(parts[1], cosine))
    back = [order.index(a) for a in range(last)]
    return g.concat(*(g.unsqueeze(g.transpose(p, *back), last) for p in (real, imaginary)), axis=last)


def _fitted(g: Replacement, value: Value, transform: Transform) -> Value:
    """The value cut to the length, or filled to it with zeros."""
    length, axis = transform.length, transform.axis
    if not transform.is_fitted or length is None:
        return value
    cut = g.slice(value, g.ints(0), g.ints(length), [axis])
    missing = g.sub(g.ints(length), g.size(cut, axis))
    before, behind = g.ints(*[0] * (transform.rank + axis)), [0] * (transform.rank - 1 - axis)
    return g.pad(cut, g.concat(before, missing, *([g.ints(*behind)] if behind else [])))


def _matrices(g: Replacement, value: Value, transform: Transform) -> tuple[Value, Value]:
    """exp(-2 pi i n k / length) as two matrices [n, k]; of the inverse exp(2 pi i n k / length) / length."""
    sign = 1.0 if transform.inverse else -1.0
    if transform.length is not None:
        length = transform.length
        count = length // 2 + 1 if transform.onesided else length
        # n * k modulo the length keeps the angles small and exact.
        turns = np.outer(np.arange(length), np.arange(count)) % length
        angles = 2 * math.pi * turns / length
        scale = 1 / length if transform.inverse else 1.0
        pair = np.cos(angles) * scale, np.sin(angles) * sign * scale
        return g.const(pair[0].astype(np.float32), "cosines"), g.const(pair[1].astype(np.float32), "sines")
    size = g.squeeze(g.size(value, transform.axis), 0)
    count = size
    if transform.onesided:
        count = g.add(g.div(size, g.scalar(2, dtype=INT64)), g.scalar(1, dtype=INT64))
    turns = g.mod(g.mul(g.unsqueeze(g.arange(size), 1), g.unsqueeze(g.arange(count), 0)), size)
    length = g.cast(size, FLOAT)
    angles = g.div(g.mul(g.cast(turns, FLOAT), g.scalar(2 * math.pi)), length)
    waves = g.op("Cos", angles), g.mul(g.op("Sin", angles), g.scalar(sign))
    return waves if not transform.inverse else (g.div(waves[0], length), g.div(waves[1], length))


RULE = Rule(
    name="dft",
    why="No TensorRT has DFT; products with cosines and sines are its definition.",
    ops=("DFT",),
    find=find,
    keeps_infinities=False,
    before="DFT(x[N,T,L,1], axis=2, onesided=1)",
    after="Concat(MatMul(x, cos(2 pi n k / L)), MatMul(x, -sin(2 pi n k / L)))",
)
