"""What the plan knows: nodes that stay in FP32, what each value is made of, the sizes of constants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import onnx

from trtconv.rewrite.graph.index import Graph
from trtconv.rewrite.precision.half import HalfFormat, extreme
from trtconv.rewrite.precision.operators import Reason
from trtconv.rewrite.precision.types import ElementTypes, Signatures

# What a value is made of: data; constants and truth values; or integers, shapes and constants.
DATA, FREE, EXACT_VALUE = 0, 1, 2


@dataclass
class PrecisionPlan:
    """Nodes that stay in FP32 by their `id`, with the reason; `made_of` by scope and value name."""

    to: HalfFormat
    types: ElementTypes
    signatures: Signatures
    block: frozenset[str]
    keep: Collection[str]
    fp32_outputs: bool
    fp32_reasons: dict[int, Reason] = field(default_factory=dict)
    made_of: dict[int, dict[str, int]] = field(default_factory=dict)
    _largest: dict[int, float] = field(default_factory=dict)

    def origin(self, graph: Graph, name: str) -> int:
        """DATA, FREE or EXACT_VALUE."""
        scope: Graph | None = graph
        while scope is not None:
            origins = self.made_of.get(id(scope), {})
            if name in origins:
                return origins[name]
            if name in scope.initializers:
                return DATA if name in scope.defaults else FREE
            scope = None if name in scope.inputs else scope.parent
        return DATA

    def floats(self, graph: Graph, names: list[str]) -> list[str]:
        """Those of the values that are FP32 in the model."""
        return [n for n in names if self.types.is_float(graph, n)]

    def extreme(self, tensor: onnx.TensorProto) -> float:
        """The largest finite magnitude of a constant, read once."""
        if id(tensor) not in self._largest:
            self._largest[id(tensor)] = extreme(tensor)
        return self._largest[id(tensor)]
