"""The index as the tables of `trtconv.core.targets` read a graph: the protocols of its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import onnx

from trtconv.core.dtypes import dtype_from_onnx
from trtconv.core.errors import InvalidRequestError
from trtconv.rewrite.graph.index import Graph, Node

SMALL = 64


class IndexedNode:
    """A node of the index."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self.op = node.op
        self.inputs: Sequence[str] = node.inputs
        self.outputs: Sequence[str] = node.outputs

    @property
    def branch_ranks(self) -> Sequence[Sequence[int | None]]:
        """Of an If, for each output its rank in each branch."""
        if self.op != "If":
            return ()
        return tuple(zip(*([b.rank(o) for o in b.outputs] for b in self._node.bodies), strict=False))

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute as a Python value."""
        return self._node.attr(name, default)

    def input(self, index: int) -> str:
        """The name of an input, empty when it is omitted."""
        return self._node.input(index)


class IndexedGraph:
    """A graph or a body of the index."""

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    @property
    def opset(self) -> int:
        """The opset of ONNX's own domain."""
        return self._graph.opset

    def is_constant(self, name: str) -> bool:
        """True for an initializer or the output of a Constant node."""
        return self._graph.is_constant(name)

    def is_fed(self, name: str) -> bool:
        """True for an input of the model."""
        return name in self._graph.inputs

    def is_used(self, name: str) -> bool:
        """True when a node reads the value or the graph returns it."""
        return bool(self._graph.uses(name)) or name in self._graph.outputs

    def small_constant(self, name: str) -> list[float] | None:
        """The elements of a constant of at most 64 elements, or None."""
        values = self._graph.constant(name, SMALL)
        return None if values is None else [float(v) for v in values.reshape(-1)]

    def exceeds_bits(self, name: str, bits: int) -> bool:
        """True for a constant of 64-bit integers with an element that does not fit a signed integer of `bits`."""
        if self._graph.dtype(name) != onnx.TensorProto.INT64:
            return False
        top = 1 << (bits - 1)
        return any(not -top <= v < top for v in self._graph.ints(name) or ())

    def dtype(self, name: str) -> str:
        """The element type of a value, empty when not known."""
        number = self._graph.dtype(name)
        try:
            return dtype_from_onnx(number).name if number else ""
        except InvalidRequestError:
            return str(onnx.TensorProto.DataType.Name(number)).lower()

    def rank(self, name: str) -> int | None:
        """The rank of a value, None when not known."""
        return self._graph.rank(name)
