"""Nodes that compute one whole number of sizes in an ONNX graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trtconv.export.exporters.trace import Trace

if TYPE_CHECKING:
    import onnx


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
        import onnx

        equal = self.op("Equal", key, self._tensor(special, (len(special),)))
        chosen = self.op("Mul", self.op("Cast", equal, to=onnx.TensorProto.INT64), self._tensor(more, (len(more),)))
        return self.op("Add", value, self.op("ReduceSum", chosen, keepdims=0))

    def add_from(self, value: str, size: str, steps: Sequence[tuple[int, int]]) -> str:
        """The value and, for each (size, jump) from that size on, the jump."""
        import onnx

        below = self.op("Less", size, self._tensor([n for n, _ in steps], (len(steps),)))
        jumps = self._tensor([jump for _, jump in steps], (len(steps),))
        climbed = self.op("Mul", self.op("Cast", self.op("Not", below), to=onnx.TensorProto.INT64), jumps)
        return self.op("Add", value, self.op("ReduceSum", climbed, keepdims=0))

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
