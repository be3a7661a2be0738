"""Shape expressions as nodes of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.generalise.fit import SizeFormula


class CannotFollowError(Exception):
    """A number moved in a way that no expression of the dims gives; the text names it."""


@dataclass
class FormulaBuilder:
    """Nodes that compute shape expressions, to be put at the start of the graph."""

    specs: tuple[TensorSpec, ...]
    nodes: list[Any] = field(default_factory=list)
    tensors: list[Any] = field(default_factory=list)
    names_by_key: dict[str, str] = field(default_factory=dict)

    def constant(self, values: Sequence[int]) -> str:
        """The name of an int64 vector."""
        import numpy as np
        from onnx import numpy_helper

        name = "trtconv_" + "_".join(str(v) for v in values).replace("-", "m")
        if name not in self.names_by_key:
            self.tensors.append(numpy_helper.from_array(np.array(values, dtype=np.int64), name))
            self.names_by_key[name] = name
        return name

    def table(self, values: Any) -> str:
        """The name of a constant of the values' own shape and dtype."""
        import numpy as np
        from onnx import numpy_helper

        name = f"trtconv_table_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(values), name))
        return name

    def scalar(self, vector: str) -> str:
        """The one element of a vector, without an axis."""
        return self.op("Reshape", [vector, self.constant([])])

    def op(self, kind: str, inputs: Sequence[str], **attributes: Any) -> str:
        """The name of a node's output; equal nodes are made once."""
        import onnx

        key = f"{kind}({','.join(inputs)}){sorted(attributes.items())}"
        if key not in self.names_by_key:
            name = f"trtconv_{kind}_{len(self.nodes)}"
            self.nodes.append(onnx.helper.make_node(kind, list(inputs), [name], name=name, **attributes))
            self.names_by_key[key] = name
        return self.names_by_key[key]

    def dim(self, name: str) -> str:
        """A vector of one element: the size of a named dim, read from the first input that has it."""
        spec = next(s for s in self.specs if name in s.dims)
        shape = self.op("Shape", [spec.name])
        return self.op("Gather", [shape, self.constant([spec.dims.index(name)])], axis=0)

    def expression(self, formula: SizeFormula) -> str:
        """A vector of one element with the expression's value."""
        parts = []
        for term in formula.terms:
            value = self.dim(term.dim)
            if term.factor != 1:
                value = self.op("Mul", [value, self.constant([term.factor])])
            if term.shift:
                value = self.op("Add", [value, self.constant([term.shift])])
            parts.append(self.op("Div", [value, self.constant([term.divisor])]) if term.divisor != 1 else value)
        if formula.constant != (0 if formula.sums else 1):
            parts.append(self.constant([formula.constant]))
        total = parts[0]
        for part in parts[1:]:
            total = self.op("Add" if formula.sums else "Mul", [total, part])
        if formula.most is not None:
            total = self.op("Min", [total, self.constant([formula.most])])
        return total if formula.least is None else self.op("Max", [total, self.constant([formula.least])])
