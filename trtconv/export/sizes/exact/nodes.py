"""Nodes that compute one whole number of sizes in an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.export.exporters.trace import Trace

if TYPE_CHECKING:
    import onnx


# TensorRT computes sizes from vectors of up to 64 numbers.
MOST_TOGETHER = 60


class SizeNodes:
    """Nodes in whole numbers, int64 [], that go into a graph at the place of one that computes in floats."""

    def __init__(self, graph: onnx.GraphProto, name: str, trace: Trace) -> None:
        self._graph, self._name, self._trace = graph, name, trace
        self.nodes: list[onnx.NodeProto] = []
        self._outputs: dict[tuple[object, ...], str] = {}

    def constant(self, value: int) -> str:
        """A number."""
        return self._tensor([value], ())

    def op(self, kind: str, *inputs: str, **attributes: int) -> str:
        """A node, once for the same inputs and attributes; returns its output."""
        import onnx

        key = (kind, inputs, tuple(attributes.items()))
        if key not in self._outputs:
            output = self._outputs[key] = f"{self._name}/exact_{len(self.nodes)}"
            self.nodes.append(onnx.helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return self._outputs[key]

    def size(self, dim: str) -> str:
        """The size of a dim, from the first input that has it."""
        spec = next(s for s in self._trace.specs if dim in s.dims)
        return self.op("Gather", self.op("Shape", spec.name), self.constant(spec.dims.index(dim)))

    def add_where_equal(self, value: str, key: str, special: Sequence[int], more: Sequence[int]) -> str:
        """The value and, where `key` is one of the special numbers, the number at its index."""
        for first in range(0, len(special), MOST_TOGETHER):
            part = slice(first, first + MOST_TOGETHER)
            equal = self.op("Equal", key, self._vector(special[part]))
            value = self._add_sum(value, equal, more[part])
        return value

    def add_from(self, value: str, size: str, steps: Sequence[tuple[int, int]]) -> str:
        """The value and, for each (size, jump) from that size on, the jump."""
        for first in range(0, len(steps), MOST_TOGETHER):
            part = steps[first : first + MOST_TOGETHER]
            below = self.op("Less", size, self._vector([n for n, _ in part]))
            value = self._add_sum(value, self.op("Not", below), [jump for _, jump in part])
        return value

    def _add_sum(self, value: str, mask: str, numbers: Sequence[int]) -> str:
        """The value and the sum of the numbers where the mask is true."""
        import onnx

        chosen = self.op("Mul", self.op("Cast", mask, to=onnx.TensorProto.INT64), self._vector(numbers))
        return self.op("Add", value, self.op("ReduceSum", chosen, keepdims=0))

    def _vector(self, values: Sequence[int]) -> str:
        return self._tensor(values, (len(values),))

    def _tensor(self, values: Sequence[int], shape: tuple[int, ...]) -> str:
        import onnx

        tensor = onnx.helper.make_tensor("", onnx.TensorProto.INT64, shape, values)
        stem = "trtconv_exact_" + "_".join(map(str, values[:4])).replace("-", "minus_")
        alike = [t for t in self._graph.initializer if t.name.startswith(stem)]
        for held in alike:
            if held.dims == tensor.dims and held.int64_data == tensor.int64_data:
                return str(held.name)
        tensor.name = f"{stem}/{len(alike)}" if alike else stem
        self._graph.initializer.append(tensor)
        return str(tensor.name)
