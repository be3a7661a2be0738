"""What a file of a script may decide otherwise than Python: a comparison with a number that FP32 rounds twice."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trtconv.export.exporters.scripted.lines import source_line
from trtconv.export.exporters.scripted.rounding import walk
from trtconv.export.exporters.scripted.tables import rounded_twice

CUTTING = frozenset(f"aten::{name}" for name in (
    "ge", "gt", "le", "lt", "eq", "ne", "greater", "greater_equal", "less", "less_equal", "not_equal", "floor", "ceil",
    "round", "trunc", "fix", "frac", "sign", "sgn", "remainder", "fmod", "floor_divide", "__floordiv__", "argmax",
    "argmin", "sort", "argsort", "topk", "searchsorted", "bucketize", "heaviside", "isclose", "arange", "nonzero",
    "long", "int", "unique",
))  # fmt: skip
# Operators that compute exactly or round once, and those that move values: a number shows through them.
SHOWING = frozenset(f"aten::{name}" for name in (
    "add", "sub", "rsub", "mul", "div", "true_divide", "neg", "abs", "where", "masked_fill", "full", "full_like",
    "new_full", "tensor", "fill", "stack", "cat", "append", "select", "slice", "unsqueeze", "squeeze", "expand",
    "expand_as", "view", "reshape", "transpose", "permute", "clone", "contiguous", "to", "float", "index", "maximum",
    "minimum", "clamp", "clamp_min", "clamp_max", "relu", "scalar_tensor", "add_", "sub_", "mul_", "div_", "fill_",
    "copy_", "masked_fill_", "clamp_", "_set_item", "__getitem__", "unbind", "lerp", "addcmul",
)) | frozenset(
    f"prim::{name}" for name in ("ListConstruct", "TupleConstruct", "TupleUnpack", "ListUnpack", "NumToTensor")
)  # fmt: skip
WHOLE = (1, 2, 3, 4)
NOTE = (
    "the module compares or rounds values with numbers that a loop computes in FP64 ({lines}); the file has FP32, "
    "which may differ in the last bit: compute them in whole numbers (10 * length >= 3 * t), or in tensors"
)


def inexact_decisions(graph: Any, base: Path | None = None, mixed: bool = False) -> tuple[str, ...]:
    """A note that names the lines at which an inlined graph decides by a number that FP32 rounds twice; else none.

    `mixed`: there are tensors of another type than FP32 (`mixes_floats`).
    """
    lines = dict.fromkeys(source_line(node, base) for node in _deciding(graph, mixed))
    return (NOTE.format(lines=", ".join(list(lines)[:4])),) if lines else ()


def _deciding(graph: Any, mixed: bool) -> Iterator[Any]:
    showing: set[int] = set()
    for value, _ in rounded_twice(graph, mixed):
        if value.type().kind() in ("FloatType", "NumberType"):
            showing.add(value.unique())
        else:
            yield value.node()
    while showing:
        before = len(showing)
        for node in walk(graph):
            _show_through(node, showing)
        if len(showing) == before:
            break
    for node in walk(graph):
        tensors = any(o.type().kind() not in ("FloatType", "IntType", "BoolType", "NumberType") for o in node.outputs())
        if tensors and _cuts(node) and any(i.unique() in showing for i in node.inputs()):
            yield node


def _cuts(node: Any) -> bool:
    kind = node.kind()
    if kind == "aten::to":
        return any(i.type().kind() == "IntType" and i.toIValue() in WHOLE for i in node.inputs())
    return bool(kind in CUTTING)


def _show_through(node: Any, showing: set[int]) -> None:
    """Add what a node gives where a number shows in it."""

    def pass_on(read: Any, result: Any) -> None:
        if read.unique() in showing:
            showing.add(result.unique())

    if node.kind() == "prim::If":
        for block in node.blocks():
            for result, output in zip(block.outputs(), node.outputs(), strict=True):
                pass_on(result, output)
    elif node.kind() == "prim::Loop":
        (body,) = node.blocks()
        states = zip(list(node.inputs())[2:], list(body.inputs())[1:], list(body.outputs())[1:], strict=True)
        for (start, state, end), output in zip(states, node.outputs(), strict=True):
            for read in (start, end):
                pass_on(read, state)
                pass_on(read, output)
    elif node.kind() in SHOWING:
        inputs = list(node.inputs())
        written = inputs[:1] if node.kind().endswith(("append", "_", "_set_item")) else []
        for read in inputs:
            for result in (*node.outputs(), *written):
                pass_on(read, result)
