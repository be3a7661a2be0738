"""The two sides of a join: by name what makes a value, and its type."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.dim_names import declared_dims
from trtconv.export.branches.joined.numbering import Numbering, is_joined

if TYPE_CHECKING:
    import onnx

# Operators that work out whole numbers from sizes; what they divide by is looked at.
SIZE_OPERATORS = {
    *("Gather", "Concat", "Squeeze", "Unsqueeze", "Reshape", "Slice", "Identity", "Cast"),
    *("Add", "Sub", "Mul", "Div", "Mod", "Min", "Max", "Neg", "Abs"),
}
# Of these a part that is a constant can stand for "what is left over".
PASSING = {"Concat", "Squeeze", "Unsqueeze", "Reshape", "Identity", "Cast", "Gather"}


@dataclass(frozen=True)
class DeclaredTensor:
    """Element type and dims of a tensor; a dim is a number, an expression of sizes, or empty."""

    element: int
    dims: tuple[int | str, ...]


class Side:
    """One of the two graphs; the values of both are looked up by the names that they have in the joined graph."""

    def __init__(
        self,
        body: onnx.GraphProto,
        types: Mapping[str, DeclaredTensor],
        weights: Mapping[str, onnx.TensorProto],
        numbering: Numbering,
    ) -> None:
        self.body, self.types, self.weights, self.numbering = body, types, weights, numbering
        self.makers = {o: n for n in _nodes_of(body) for o in n.output if o}
        self.order = {o: i for i, n in enumerate(body.node) for o in n.output if o}
        self.names: dict[int, str] = {}
        for name in self.order:
            self.names.setdefault(numbering.of(name), name)
        self._of_sizes: dict[str, bool] = {}

    def through(self, name: str) -> str:
        """A value before the Identity nodes that hand it on."""
        while name in self.makers and self.makers[name].op_type == "Identity":
            name = self.makers[name].input[0]
        return name

    def is_outside(self, name: str) -> bool:
        """True for an input or a weight."""
        return name not in self.makers

    def is_of_sizes(self, name: str, other: Side) -> bool:
        """True for whole numbers that are worked out from constants and sizes which both sides have.

        Each of these can be computed wherever the graph is run.
        """
        waiting = [name]
        while waiting:
            value = waiting[-1]
            if value in self._of_sizes:
                waiting.pop()
                continue
            node = self.makers.get(value)
            answer: bool | None = None
            if node is None:
                answer = value in self.weights and self._is_whole(value)
            elif node.op_type in ("Shape", "Size"):
                answer = self.is_outside(node.input[0]) or self.numbering.of(node.input[0]) in other.names
            elif node.op_type not in SIZE_OPERATORS or not self._divides_safely(node):
                answer = False
            if answer is None and node is not None:
                inner = [i for i in node.input if i not in self._of_sizes]
                if inner:
                    waiting += inner
                    continue
                answer = all(self._of_sizes[i] for i in node.input)
            self._of_sizes[value] = bool(answer)
            waiting.pop()
        return self._of_sizes[name]

    def has_wildcard(self, name: str) -> bool:
        """True where an element is a constant under 1: of a Reshape the size that is left over, or that is copied."""
        import onnx

        node = self.makers.get(name)
        if node is None:
            tensor = self.weights.get(name)
            return tensor is not None and bool((onnx.numpy_helper.to_array(tensor) < 1).any())
        parts = node.input if node.op_type == "Concat" else node.input[:1]
        return node.op_type in PASSING and any(self.has_wildcard(part) for part in parts)

    def _is_whole(self, name: str) -> bool:
        import onnx

        return self.weights[name].data_type in (onnx.TensorProto.INT64, onnx.TensorProto.INT32)

    def _divides_safely(self, node: onnx.NodeProto) -> bool:
        import onnx

        if node.op_type not in ("Div", "Mod"):
            return True
        divisor = self.weights.get(node.input[1])
        return divisor is not None and bool(onnx.numpy_helper.to_array(divisor).all())


def types_of(graph: onnx.GraphProto) -> dict[str, DeclaredTensor]:
    """What a graph declares of its values."""
    types = {t.name: DeclaredTensor(t.data_type, tuple(t.dims)) for t in graph.initializer}
    for value in (*graph.input, *graph.value_info, *graph.output):
        tensor = value.type.tensor_type
        if tensor.elem_type and tensor.HasField("shape"):
            types[value.name] = DeclaredTensor(tensor.elem_type, tuple(declared_dims(value)))
    return types


def _nodes_of(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    for node in graph.node:
        yield node
        if is_joined(node):
            for body in bodies_of(node):
                yield from _nodes_of(body)
