"""Arithmetic on bytes in FP32: TensorRT takes uint8 at its inputs and outputs only, next to a Cast.

All 256 values and their sums and products are exact in FP32. What leaves 0..255 is wrapped around, as integers do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from functools import partial
from typing import Any

import onnx

from trtconv.core.model.provenance import rule_of
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip
from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.graph.operators import FLOAT, Value
from trtconv.rewrite.graph.replacement import Replacement

NAME = "uint8"
UINT8, INT32, INT64, FLOAT16 = 2, 6, 7, 10
# These hand bytes on, and these choose among them.
MOVES = (
    "Transpose", "Reshape", "Unsqueeze", "Squeeze", "Flatten", "Slice", "Concat", "Split", "Gather", "GatherElements",
    "GatherND", "Expand", "Tile", "DepthToSpace", "SpaceToDepth",
)  # fmt: skip
CHOICES = ("Where", "Max", "Min", "Clip", "Pad", "ReduceMax", "ReduceMin")
WRAPPED = ("Add", "Sub", "Mul")
QUOTIENTS = ("Div", "Mod")
FILLED = "ConstantOfShape"
INDICES = ("ArgMax", "ArgMin")
COMPARES = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match operators on bytes, and casts to bytes and on to something else."""
    if node.key == "Cast":
        return _cast(graph, node)
    if node.key == FILLED:
        return filled(graph, node, UINT8)
    # One look is enough: of these operators, all inputs that hold data have one type.
    if graph.dtype(node.inputs[1 if node.op == "Where" else 0]) != UINT8:
        return NOT_THIS
    places = [i for i, v in enumerate(node.inputs) if v and graph.dtype(v) == UINT8]
    if node.op == "MaxPool" and len(node.outputs) > 1:
        return Skip("the indices of a pool of bytes")
    ranges = {node.inputs[i]: (1.0 if i == 1 and node.op in QUOTIENTS else 0.0, 255.0) for i in places}
    build = partial(
        in_floats, node=node, places=places, dtype=UINT8, quotient=_quotient, wrapping=WRAPPED, low=0.0
    )
    return Found((node,), build, ranges=ranges)


def filled(graph: Graph, node: Node, dtype: int) -> Found | Skip:
    """A tensor filled with one value of `dtype` is filled in FP32."""
    if graph.dtype(node.output) != dtype:
        return NOT_THIS
    value = onnx.numpy_helper.to_array(node.attr("value")).astype("float32")
    fill = onnx.numpy_helper.from_array(value)
    return Found((node,), lambda g: g.cast(g.op(FILLED, node.inputs[0], value=fill), dtype))


def in_floats(
    g: Replacement,
    node: Node,
    places: list[int],
    dtype: int,
    quotient: Callable[[Replacement, str, Value, Value], Value],
    wrapping: Collection[str],
    low: float,
) -> tuple[Value, ...]:
    """The node with its inputs at `places` in FP32, and what comes of those cast to `dtype` again.

    What the operators `wrapping` give is wrapped around into the 256 numbers from `low` on. `quotient` is Div and Mod.
    """
    inputs = [g.cast(v, FLOAT) if i in places else v for i, v in enumerate(node.inputs)]
    attributes: dict[str, Any] = node.attributes()
    outputs: tuple[Value, ...]
    if node.op in QUOTIENTS:
        outputs = (quotient(g, node.op, *inputs),)
    else:
        outputs = g.ops(node.op, len(node.outputs), *inputs, **attributes)
    if node.op in (*COMPARES, *INDICES):
        return outputs
    if node.op == "TopK":
        return g.cast(outputs[0], dtype), *outputs[1:]
    if node.op in wrapping:
        outputs = (_wrapped(g, outputs[0], low),)
    return tuple(g.cast(v, dtype) for v in outputs)


def _quotient(g: Replacement, op: str, left: Value, right: Value) -> Value:
    """Whole quotient or remainder. Half a unit on top keeps an inexact division away from the next integer."""
    whole = g.floor(g.div(g.add(left, g.scalar(0.5, dtype=FLOAT)), right))
    return whole if op == "Div" else g.sub(left, g.mul(whole, right))


def _wrapped(g: Replacement, value: Value, low: float) -> Value:
    """A whole number in FP32 wrapped around into the 256 from `low` on."""
    above = g.sub(value, g.scalar(low, dtype=FLOAT)) if low else value
    turns = g.floor(g.mul(above, g.scalar(1 / 256, dtype=FLOAT)))
    return g.sub(value, g.mul(turns, g.scalar(256.0, dtype=FLOAT)))


def _cast(graph: Graph, node: Node) -> Found | Skip:
    """A byte between two casts; and for TensorRT 8.6, which casts bytes from and to floats only, an integer beside."""
    source, last = graph.dtype(node.inputs[0]), node.attr("to")
    eight = graph.target.generation == 8
    first = graph.maker(node.inputs[0], "Cast") if source == UINT8 else None
    if first is not None and graph.dtype(first.inputs[0]) not in (0, UINT8):
        return _between(graph, first, node)
    floats = (FLOAT, FLOAT16)
    if eight and UINT8 in (source, last) and source != last and source and not {source, last} & set(floats):
        value = node.inputs[0]
        if source in (INT32, INT64):
            # Integers wrap around; a float beyond a byte has no meaning as one.
            return Found(
                (node,),
                lambda g: g.cast(g.cast(_low_byte(g, value, source), FLOAT), last),
                ranges={value: (-1000.0, 1000.0)},
            )
        return Found((node,), lambda g: g.cast(g.cast(value, FLOAT), last), ranges={value: (0.0, 255.0)})
    return NOT_THIS


def _low_byte(g: Replacement, value: Value, dtype: int) -> Value:
    return g.mod(value, g.scalar(256, dtype=dtype))


def _between(graph: Graph, first: Node, node: Node) -> Found | Skip:
    value, last = first.inputs[0], node.attr("to")
    source = graph.dtype(value)
    whole = rule_of(first.proto) == NAME
    if whole:
        # This rule made the cast: what it casts lies between 0 and 255 already.
        if source == last and not _captured(graph, node):
            return Found((first, node), lambda g: value, ranges={value: (0.0, 0.0)})
        return Found((first, node), lambda g: g.cast(value, last), ranges={value: (0.0, 0.0)})
    if source not in (FLOAT, FLOAT16, INT32, INT64):
        return NOT_THIS
    integer = source in (INT32, INT64)
    note = "" if integer else "numbers outside 0..255 wrap around; what a cast of them gives is not defined"

    def build(g: Replacement) -> Value:
        number = value if integer else g.cast(value, INT32)
        kind = source if integer else INT32
        return g.cast(g.mod(number, g.scalar(256, dtype=kind)), last)

    return Found((first, node), build, {value: (-300.0, 600.0) if integer else (0.0, 255.0)}, note)


def _captured(graph: Graph, node: Node) -> bool:
    used = any(node.output in user.implicit for user in graph.uses(node.output))
    return used or node.output in graph.outputs


RULE = Rule(
    name=NAME,
    why="TensorRT has uint8 only next to a Cast at its inputs and outputs; FP32 holds all bytes, sums and products.",
    ops=(*MOVES, *CHOICES, "MaxPool", *WRAPPED, *QUOTIENTS, *COMPARES, *INDICES, FILLED, "TopK", "Cast"),
    find=find,
    before="Div(x, 2), x uint8",
    after="Cast(Floor(Div(Cast(x, to=float32) + 0.5, 2)), to=uint8)",
)
