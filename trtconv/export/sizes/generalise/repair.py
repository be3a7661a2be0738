"""Putting shape expressions in the place of numbers that moved."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.model.provenance import origin_of
from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.generalise.align import Moved, describe_reader
from trtconv.export.sizes.generalise.fit import Observation, fit
from trtconv.export.sizes.generalise.formulas import CannotFollowError, FormulaBuilder
from trtconv.export.sizes.generalise.tables import Recorder, TableSizes, dims_of, look_up

if TYPE_CHECKING:
    import onnx

REDUCERS = {"AveragePool": "ReduceMean", "MaxPool": "ReduceMax"}
Sizes = tuple[tuple[str, int], ...]


def repair(
    graph: onnx.GraphProto,
    moved: Sequence[Moved],
    sizes: Sequence[Sizes],
    specs: tuple[TensorSpec, ...],
    opset: int,
    recorder: Recorder,
) -> list[str]:
    """Rewrite `graph`, which was traced at `sizes[0]`, in place; returns one line for each number that now follows.

    A constant that no formula gives is a table of what it is at every size. Raises CannotFollowError when a
    number has neither, and what recording at other sizes raises.
    """
    builder, notes = FormulaBuilder(specs), []
    pools = {m.node for m in moved if m.is_attribute}
    without_formula: list[tuple[Moved, CannotFollowError]] = []
    for item in moved:
        if item.is_attribute:
            continue
        try:
            notes.append(_repair_constant(graph, item, sizes, builder))
        except CannotFollowError as error:
            without_formula.append((item, error))
    for index in sorted(pools):
        notes.append(_repair_pool(graph, index, [m for m in moved if m.is_attribute and m.node == index], sizes, opset))
    notes += _repair_by_tables(graph, without_formula, sizes, builder, recorder)
    nodes = [*builder.nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)
    graph.initializer.extend(builder.tensors)
    return notes


def _repair_by_tables(
    graph: onnx.GraphProto,
    without_formula: Sequence[tuple[Moved, CannotFollowError]],
    sizes: Sequence[Sizes],
    builder: FormulaBuilder,
    recorder: Recorder,
) -> Iterator[str]:
    together: dict[TableSizes, list[Moved]] = {}
    for item, error in without_formula:
        try:
            together.setdefault(dims_of(item.values, sizes, recorder.ranges), []).append(item)
        except CannotFollowError as reason:
            raise CannotFollowError(f"{error}; {reason}") from None
    for table_sizes, items in together.items():
        constants = recorder.constants([m.name for m in items], table_sizes)
        for item in items:
            where = describe_reader(graph, item)
            try:
                name, words = look_up(table_sizes, constants[item.name], builder)
            except CannotFollowError as reason:
                raise CannotFollowError(f"a constant in {where} was made at the traced size; {reason}") from None
            _use_instead(graph, item.name, name)
            yield f"{where}: {words}"


def _repair_constant(graph: onnx.GraphProto, item: Moved, sizes: Sequence[Sizes], builder: FormulaBuilder) -> str:
    import numpy as np

    values = [np.asarray(v) for v in item.values]
    first = values[0]
    where = describe_reader(graph, item)
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
    row = builder.op("Mul", [row, builder.table(step)])
    row = builder.op("Add", [row, builder.table(longest[0])])
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
