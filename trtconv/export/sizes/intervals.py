"""Bounds of the integers that a graph computes from shapes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.size_arithmetic import INTEGERS, dims_of_shape

if TYPE_CHECKING:
    import onnx

PASSED_ON = ("Squeeze", "Unsqueeze", "Reshape", "Identity", "Slice", "Gather", "Expand", "Flatten")
WIDE = 32


@dataclass(frozen=True)
class Interval:
    """All elements of a value lie in `low`..`high`; `rooted` when they come from shapes and constants alone."""

    low: float = -math.inf
    high: float = math.inf
    rooted: bool = False


UNKNOWN = Interval()


class Bounds:
    """Looks up bounds by value name, following producers; constants and input shapes are the ends."""

    def __init__(self, graph: onnx.GraphProto, specs: tuple[TensorSpec, ...], space: ShapeSpace) -> None:
        self._producers = {name: node for node in graph.node for name in node.output}
        self._constants: Mapping[str, onnx.TensorProto] = {t.name: t for t in graph.initializer}
        self._specs = {s.name: s for s in specs}
        self._space = space
        self._found: dict[str, Interval] = {}

    def of(self, name: str) -> Interval:
        """The bounds of a value; UNKNOWN when they do not follow from shapes."""
        if name not in self._found:
            self._found[name] = UNKNOWN  # ends a cycle, should a file have one
            self._found[name] = self._compute(name)
        return self._found[name]

    def define(self, node: onnx.NodeProto) -> None:
        """Take what a node gives from it, and no more from the node of the graph; for values that none has asked of."""
        self._producers.update(dict.fromkeys(node.output, node))

    def constant(self, name: str) -> Any:
        """A constant as an array, or None."""
        from onnx import numpy_helper

        tensor = self._constants.get(name)
        node = self._producers.get(name)
        if tensor is None and node is not None and node.op_type == "Constant":
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is None or math.prod(tensor.dims) > 4096:
            return None
        return numpy_helper.to_array(tensor)

    def _compute(self, name: str) -> Interval:
        value = self.constant(name)
        if value is not None:
            if value.dtype.kind not in "iu" or not value.size:
                return UNKNOWN
            return Interval(int(value.min()), int(value.max()), True)
        node = self._producers.get(name)
        if node is None:
            return UNKNOWN
        if node.op_type in ("Shape", "Size"):
            return Interval(0, math.inf, True)
        if node.op_type == "Gather" and (dim := self._input_dim(node)):
            return dim
        if node.op_type in PASSED_ON:
            return self.of(node.input[0])
        if node.op_type == "Cast":
            return self._cast(node)
        return combine(node.op_type, [self.of(i) for i in node.input])

    def _cast(self, node: onnx.NodeProto) -> Interval:
        """The bounds of what is cast, where the type holds it: beyond, it wraps. Sizes are taken to fit int32."""
        import numpy as np
        from onnx import helper

        to = next(a.i for a in node.attribute if a.name == "to")
        if to not in INTEGERS:
            return UNKNOWN
        bounds, limits = self.of(node.input[0]), np.iinfo(helper.tensor_dtype_to_np_dtype(to))
        holds = limits.bits >= WIDE and limits.min < 0
        return bounds if holds or limits.min <= bounds.low <= bounds.high <= limits.max else UNKNOWN

    def _input_dim(self, node: onnx.NodeProto) -> Interval | None:
        shape, index = self._producers.get(node.input[0]), self.constant(node.input[1])
        if shape is None or shape.op_type != "Shape" or index is None or index.size != 1:
            return None
        spec = self._specs.get(shape.input[0])
        dims = dims_of_shape(shape, spec.dims) if spec is not None else ()
        if not -len(dims) <= int(index.item()) < len(dims):
            return None
        dim = dims[int(index.item())]
        if isinstance(dim, int):
            return Interval(dim, dim, True)
        return Interval(self._space[dim].min, self._space[dim].max, True)


def combine(op: str, operands: list[Interval]) -> Interval:
    """The bounds of an integer operation on bounded operands."""
    rooted = bool(operands) and all(o.rooted for o in operands)
    if not rooted:
        return UNKNOWN
    a = operands[0]
    b = operands[1] if len(operands) > 1 else a
    if op == "Add":
        return Interval(a.low + b.low, a.high + b.high, True)
    if op == "Sub":
        return Interval(a.low - b.high, a.high - b.low, True)
    if op == "Mul":
        corners = [_times(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
        return Interval(min(corners), max(corners), True)
    if op in ("Min", "Max"):
        pick = min if op == "Min" else max
        return Interval(pick(o.low for o in operands), pick(o.high for o in operands), True)
    if op == "Neg":
        return Interval(-a.high, -a.low, True)
    if op == "Concat":
        return Interval(min(o.low for o in operands), max(o.high for o in operands), True)
    if op == "Mod" and b.low > 0:
        return Interval(0, b.high - 1, True)
    if op == "Div" and b.low > 0:
        return Interval(math.floor(a.low / b.low) if a.low > -math.inf else -math.inf, max(a.high, 0), True)
    return Interval(-math.inf, math.inf, True) if op in ("Div", "Mod", "Abs", "Sign") else UNKNOWN


def _times(a: float, b: float) -> float:
    return 0.0 if a == 0 or b == 0 else a * b
