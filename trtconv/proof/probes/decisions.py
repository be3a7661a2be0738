"""The decisions of a graph: nodes whose outputs jump when a float operand passes a boundary.

Only those that depend on the values of float inputs: what is computed from shapes is decided by sizes. Sorting and
the choice of the largest jump where operands are equal; the probe of tied values is for them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import onnx

ROUNDING = {"Floor": 0.0, "Ceil": 0.0, "Round": 0.5}
COMPARING = ("Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Equal")
LOGICAL = ("Not", "And", "Or", "Xor", "IsNaN", "IsInf")
# The size of a tensor is not a function of its values.
BLIND = ("Shape", "Size")
INTEGERS = frozenset(range(2, 8)) | {12, 13}
# What gives numbers of its first input, or their magnitudes, to the last digit.
UNROUNDED = (
    *("Identity", "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Slice", "Gather", "GatherElements"),
    *("GatherND", "Split", "Expand", "Tile", "Concat", "Pad", "Neg", "Abs", "Relu", "Clip", "Max", "Min", "MaxPool"),
    *("ReduceMax", "ReduceMin", "DepthToSpace", "SpaceToDepth"),
)
FLOAT, BOOL, HALF, DOUBLE = 1, 9, 10, 11


@dataclass(frozen=True)
class Decision:
    """A node that decides by `operand`, less `other` where there is one; boundaries lie at `offset + k * step`.

    A `step` of 0 means that there is one boundary. `other` is a value or empty, `near` says that only the two sides
    of a boundary are asked for: quantised graphs round x / scale, their originals x * (1 / scale). `exact` says that
    nothing was rounded on the way from the inputs and constants to the comparison: it falls alike in every right graph.
    """

    node: str
    op: str
    operand: str
    other: str = ""
    offset: float = 0.0
    step: float = 0.0
    near: bool = False
    exact: bool = False

    @property
    def values(self) -> tuple[str, ...]:
        """The values that have to be known for it."""
        return (self.operand, self.other) if self.other else (self.operand,)


def find_decisions(graph: onnx.GraphProto) -> tuple[Decision, ...]:
    """The decisions of the main graph, in its order."""
    constants = _constants(graph)
    producers = {output: node for node in graph.node for output in node.output}
    feeding = {v.name for v in graph.input if v.type.tensor_type.elem_type in (FLOAT, HALF)} - set(constants)
    floats, unrounded = set(feeding), {*feeding, *constants, ""}
    decisions: list[Decision] = []
    for node in graph.node:
        if _keeps_numbers(node) and unrounded.issuperset(_numbers_read(node)):
            unrounded.update(node.output)
        if node.op_type in BLIND or not any(i in feeding for i in node.input):
            continue
        if any(i in floats for i in node.input):
            exact = node.op_type != "QuantizeLinear" and unrounded.issuperset(node.input)
            decisions += (replace(d, exact=exact) for d in _decided_by(node, constants, floats, producers))
        feeding.update(node.output)
        if not leaves_floats(node):
            floats.update(node.output)
    return tuple(decisions)


def depend_on_values(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes of the main graph that an input's values reach, and not its sizes alone, in its order."""
    feeding = {v.name for v in graph.input} - {t.name for t in graph.initializer}
    for node in graph.node:
        if node.op_type not in BLIND and any(i in feeding for i in node.input):
            feeding.update(node.output)
            yield node


def _decided_by(
    node: onnx.NodeProto, constants: dict[str, np.ndarray], floats: set[str], producers: dict[str, onnx.NodeProto]
) -> Iterator[Decision]:
    first = node.input[0]
    if node.op_type == "Cast" and _is_truth(first, producers):
        return
    if node.op_type in ROUNDING and first in floats:
        yield Decision(node.name, node.op_type, first, offset=ROUNDING[node.op_type], step=1.0)
    elif node.op_type == "Cast" and first in floats and _attribute(node, "to") in INTEGERS:
        yield Decision(node.name, node.op_type, first, step=1.0)
    elif (node.op_type == "Cast" and first in floats and _attribute(node, "to") == BOOL) or node.op_type == "Sign":
        yield Decision(node.name, node.op_type, first)
    # What is compared with an infinity decides nothing among numbers; infinities are fed by themselves.
    elif (
        node.op_type in COMPARING
        and any(i in floats for i in node.input)
        and not any(math.isinf(_number(constants, i)) for i in node.input)
    ):
        yield Decision(node.name, node.op_type, first, other=node.input[1])
    elif node.op_type == "Mod" and (step := _number(constants, node.input[1])):
        yield Decision(node.name, node.op_type, first, step=abs(step))
    elif node.op_type == "QuantizeLinear" and (scale := _number(constants, node.input[1])):
        yield Decision(node.name, node.op_type, first, offset=scale / 2, step=abs(scale), near=True)


def _is_truth(name: str, producers: dict[str, onnx.NodeProto]) -> bool:
    """True for the 0 or 1 of a truth value, of which `any` and `all` are extrema: TensorRT has none of bools."""
    node = producers.get(name)
    while node is not None and node.op_type in ("ReduceMax", "ReduceMin", "Reshape", "Squeeze", "Unsqueeze"):
        node = producers.get(node.input[0])
    source = producers.get(node.input[0]) if node is not None and node.op_type == "Cast" else None
    return source is not None and source.op_type in (*COMPARING, *LOGICAL)


def _keeps_numbers(node: onnx.NodeProto) -> bool:
    if node.op_type == "Cast":
        return _attribute(node, "to") in (FLOAT, DOUBLE)
    return node.op_type in (*UNROUNDED, *BLIND)


def _numbers_read(node: onnx.NodeProto) -> Sequence[str]:
    """The inputs whose numbers the outputs hold; the other ones are shapes and indices."""
    if node.op_type in BLIND:
        return ()
    return tuple(node.input) if node.op_type in ("Clip", "Concat", "Max", "Min") else (node.input[0],)


def leaves_floats(node: onnx.NodeProto) -> bool:
    """True when the outputs are not floats any more."""
    if node.op_type in (*COMPARING, *LOGICAL, "ArgMax", "ArgMin", "NonZero"):
        return True
    if node.op_type == "Cast":
        return _attribute(node, "to") not in (FLOAT, 10, 11, 16)
    return bool(node.op_type == "QuantizeLinear")


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), 0)


def _constants(graph: onnx.GraphProto) -> dict[str, np.ndarray]:
    """The constants of one element, by name; larger ones, and those on disk, are listed without their values."""
    import numpy as np
    from onnx import numpy_helper

    tensors = {t.name: t for t in graph.initializer}
    for node in graph.node:
        if node.op_type == "Constant":
            tensors.update((node.output[0], a.t) for a in node.attribute if a.name == "value")
    small = {n: t for n, t in tensors.items() if not t.external_data and int(np.prod(t.dims, dtype=np.int64)) == 1}
    return {n: numpy_helper.to_array(t) if n in small else np.zeros(0) for n, t in tensors.items()}


def _number(constants: dict[str, np.ndarray], name: str) -> float:
    value = constants.get(name)
    return float(value.reshape(-1)[0]) if value is not None and value.size == 1 else 0.0
