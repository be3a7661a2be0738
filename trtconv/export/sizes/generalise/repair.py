"""Putting shape expressions in the place of numbers that moved."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtconv.core.model.provenance import origin_of
from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.generalise.align import Moved
from trtconv.export.sizes.generalise.fit import Observation, SizeFormula, fit

if TYPE_CHECKING:
    import onnx

REDUCERS = {"AveragePool": "ReduceMean", "MaxPool": "ReduceMax"}
Sizes = tuple[tuple[str, int], ...]


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

    def number(self, value: Any) -> str:
        """The name of a 0-d constant of the value's own dtype."""
        import numpy as np
        from onnx import numpy_helper

        name = f"trtconv_number_{len(self.tensors)}"
        self.tensors.append(numpy_helper.from_array(np.asarray(value), name))
        return name

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


def repair(
    graph: onnx.GraphProto, moved: Sequence[Moved], sizes: Sequence[Sizes], specs: tuple[TensorSpec, ...], opset: int
) -> list[str]:
    """Rewrite `graph`, which was traced at `sizes[0]`, in place; returns one line for each number that now follows.

    Raises CannotFollowError when a number has no expression.
    """
    builder, notes = FormulaBuilder(specs), []
    pools = {m.node for m in moved if m.is_attribute}
    for item in moved:
        if item.is_attribute:
            continue
        notes.append(_repair_constant(graph, item, sizes, builder))
    for index in sorted(pools):
        notes.append(_repair_pool(graph, index, [m for m in moved if m.is_attribute and m.node == index], sizes, opset))
    nodes = [*builder.nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(builder.tensors)
    return notes


def _repair_constant(graph: onnx.GraphProto, item: Moved, sizes: Sequence[Sizes], builder: FormulaBuilder) -> str:
    import numpy as np

    node = next((n for n in graph.node if item.name in n.input), graph.node[item.node])
    values = [np.asarray(v) for v in item.values]
    first = values[0]
    where = f"{node.op_type} of {origin_of(node)}"
    if first.dtype.kind == "f" and first.size == 1 and (number := _repair_float(values, sizes, builder)):
        _use_instead(graph, item.name, number[0])
        return f"{where}: {number[1]}"
    if first.ndim == 1 and (row := _repair_range(values, sizes, builder)):
        _use_instead(graph, item.name, row[0])
        return f"{where}: {row[1]}"
    if first.dtype.kind not in "iu" or any(v.shape != first.shape for v in values):
        raise CannotFollowError(f"a table of {first.dtype} {list(first.shape)} in {where} was made at the traced size")
    parts, shown = [], []
    for index in range(first.size):
        series = [int(v.reshape(-1)[index]) for v in values]
        if len(set(series)) == 1:
            parts.append(builder.constant([series[0]]))
            continue
        formula = fit([Observation(s, v) for s, v in zip(sizes, series, strict=True)])
        if formula is None:
            raise CannotFollowError(f"the number {series[0]} in {where} follows the size in no simple way")
        parts.append(builder.expression(formula))
        shown.append(f"{series[0]} = {formula}")
    whole = builder.op("Concat", parts, axis=0) if len(parts) > 1 else parts[0]
    if first.ndim != 1:
        whole = builder.op("Reshape", [whole, builder.constant(list(first.shape))])
    if first.dtype != np.int64:
        whole = builder.op("Cast", [whole], to=6 if first.dtype == np.int32 else 7)
    _use_instead(graph, item.name, whole)
    return f"{where}: {', '.join(shown)}"


def _repair_float(values: Sequence[Any], sizes: Sequence[Sizes], builder: FormulaBuilder) -> tuple[str, str] | None:
    """A fraction that is a whole number at every size, or one over a whole number."""
    import numpy as np

    series = np.array([v.reshape(-1)[0] for v in values], dtype=np.float64)
    for inverse in (False, True):
        with np.errstate(all="ignore"):
            numbers = 1.0 / series if inverse else series
        if not np.all(np.isfinite(numbers)) or np.any(np.abs(numbers - np.round(numbers)) > 1e-6 * np.abs(numbers)):
            continue
        formula = fit([Observation(s, round(float(v))) for s, v in zip(sizes, numbers, strict=True)])
        if formula is None:
            continue
        whole = builder.op("Cast", [builder.expression(formula)], to=_onnx_type(values[0]))
        if inverse:
            whole = builder.op("Reciprocal", [whole])
        whole = builder.op("Reshape", [whole, builder.constant(list(values[0].shape))])
        return whole, f"{series[0]:g} = {f'1 / ({formula})' if inverse else formula}"
    return None


def _repair_range(values: Sequence[Any], sizes: Sequence[Sizes], builder: FormulaBuilder) -> tuple[str, str] | None:
    """A row start, start + step, ... whose length follows the size."""
    import numpy as np

    longest = max(values, key=lambda v: v.size)
    if len({v.size for v in values}) == 1 or longest.size < 2 or longest.dtype.kind not in "if":
        return None
    step = longest[1] - longest[0]
    line = (longest[0] + step * np.arange(longest.size)).astype(longest.dtype)
    if not np.array_equal(line, longest) or any(not np.array_equal(v, line[: v.size]) for v in values):
        return None
    formula = fit([Observation(s, int(v.size)) for s, v in zip(sizes, values, strict=True)])
    if formula is None:
        return None
    scalar = builder.constant([])
    stop = builder.op("Reshape", [builder.expression(formula), scalar])
    zero, one = (builder.op("Reshape", [builder.constant([n]), scalar]) for n in (0, 1))
    row = builder.op("Cast", [builder.op("Range", [zero, stop, one])], to=_onnx_type(longest))
    row = builder.op("Mul", [row, builder.number(step)])
    row = builder.op("Add", [row, builder.number(longest[0])])
    return row, f"a row of {values[0].size} = {formula} numbers from {longest[0]:g} in steps of {step:g}"


def _onnx_type(array: Any) -> int:
    import onnx

    return int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))


def _use_instead(graph: onnx.GraphProto, old: str, new: str) -> None:
    for node in graph.node:
        for index, name in enumerate(node.input):
            if name == old:
                node.input[index] = new


def _repair_pool(graph: onnx.GraphProto, index: int, moved: Sequence[Moved], sizes: Sequence[Sizes], opset: int) -> str:
    """A pool whose window is the size of its axis, wherever it was traced, is a reduction of that axis."""
    import onnx

    node = graph.node[index]
    where = f"{node.op_type} of {origin_of(node)}"
    kernels = next((m for m in moved if m.name == "kernel_shape"), None)
    plain = {a.name: list(a.ints) for a in node.attribute if a.ints}
    if node.op_type not in REDUCERS or kernels is None or any(plain.get("pads", [])) or len(node.output) > 1:
        names = ", ".join(sorted({m.name for m in moved}))
        raise CannotFollowError(f"{names} of {where} follows the size, and is an attribute")
    following = [i for i in range(len(kernels.values[0])) if len({v[i] for v in kernels.values}) > 1]
    if any(k != 1 for i, k in enumerate(kernels.values[0]) if i not in following):
        raise CannotFollowError(f"kernel_shape of {where} follows the size in one axis only")
    axes = [2 + i for i in following]
    reducer = REDUCERS[node.op_type]
    inputs, attributes = [node.input[0]], {"keepdims": 1}
    if opset >= 18:
        name = f"{node.output[0]}_axes"
        graph.initializer.append(onnx.helper.make_tensor(name, 7, [len(axes)], axes))
        inputs.append(name)
    else:
        attributes["axes"] = axes  # type: ignore[assignment]
    reduction = onnx.helper.make_node(reducer, inputs, list(node.output), name=node.name, **attributes)
    reduction.metadata_props.extend(node.metadata_props)
    node.CopyFrom(reduction)
    return f"{where}: the window is the whole axis, so it is {reducer} over axes {axes}"
