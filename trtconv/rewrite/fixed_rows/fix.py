"""`--nms topk`: a model whose outputs have a size that the values decide, at fixed sizes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import onnx
from onnx import helper

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.file import set_metadata
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import FIXED_ROWS_KEY
from trtconv.core.shape_space.fixed_rows import FixedOutput, FixedRows
from trtconv.core.targets import Target
from trtconv.rewrite.fixed_rows import births, moving, passing
from trtconv.rewrite.fixed_rows.clusters import Suppression
from trtconv.rewrite.fixed_rows.empty_guards import without_empty_guards
from trtconv.rewrite.fixed_rows.row_count import RowCount, cannot
from trtconv.rewrite.fixed_rows.selection import INT32, least, valid_mask
from trtconv.rewrite.fixed_rows.walk import Walk
from trtconv.rewrite.graph.facts import index_model

HANDLERS = {
    **passing.HANDLERS,
    **moving.HANDLERS,
    "Compress": births.compress,
    "Concat": births.concat,
    "NonMaxSuppression": births.non_max_suppression,
    "NonZero": births.non_zero,
}
COUNT = "num_detections"
OLDEST_OPSET = 11


@dataclass(frozen=True)
class FixedModel:
    """A model at fixed sizes, what became of its outputs, and its suppressions to be compared one by one."""

    model: onnx.ModelProto
    record: FixedRows
    suppressions: tuple[Suppression, ...]


def fix_rows(model: onnx.ModelProto, target: Target, most: int) -> FixedModel:
    """A copy whose outputs have at most `most` rows where the values decide how many.

    Raises UnsupportedError for a node that needs the true number of rows, with the line that it is from.
    """
    if opset_of(model) < OLDEST_OPSET:
        raise UnsupportedError(
            f"--nms topk: opset {opset_of(model)} has no ScatterElements",
            hint=f"convert the model to opset {OLDEST_OPSET} or newer",
        )
    model, guards = without_empty_guards(model, births.BIRTHS)
    # Once to see what becomes of each suppression, then with as many steps as are of use.
    limits = row_limits(walk_through(_copy(model), target, most, {}), most)
    copy = _copy(model)
    walk = walk_through(copy, target, most, limits)
    for guard in guards:
        if not guard.holds(walk):
            raise cannot(walk.index.makers[guard.outputs[0]], "stands for an If on other rows than those of its part")
    outputs = [o for o in walk.index.outputs if o in walk.rows]
    names = _count_names(walk, outputs)
    fixed = tuple(_close(walk, o, names[walk.rows[o].count]) for o in outputs)
    for count, name in names.items():
        capped = least(walk.g, count.count, walk.g.ints(most + 1))
        walk.emit(name, walk.g.cast(capped, INT32))
    record = FixedRows(fixed, most)
    _write(copy, walk, record)
    return FixedModel(copy, record, tuple(_suppressions(walk, outputs)))


def _suppressions(walk: Walk, outputs: list[str]) -> Iterator[Suppression]:
    """What is to be compared: an index that is an output of the model was renamed."""
    for name, count in walk.births.items():
        node = walk.index.makers[name]
        source = walk.of(node.inputs[1]) or walk.of(node.inputs[0])
        valid = "" if source is None else source.count.count.name
        yield Suppression(node, f"{name}/all" if name in outputs else name, count.count.name, valid)


def _copy(model: onnx.ModelProto) -> onnx.ModelProto:
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    return copy


def walk_through(model: onnx.ModelProto, target: Target, most: int, limits: Mapping[str, int]) -> Walk:
    """Handle each node of a model that has to do with a size that the values decide."""
    index = index_model(model, target)
    walk = Walk(index, most, limits)
    for node in sorted(index.nodes.values(), key=lambda n: n.order):
        if node.key not in births.BIRTHS and not walk.touched(node):
            walk.keep(node)
            continue
        handler = HANDLERS.get(node.key)
        if handler is None and all(n not in walk.rows for n in (*node.inputs, *node.implicit)):
            raise cannot(node, "takes the number of rows, which is another one at fixed sizes")
        if handler is None:
            raise cannot(node, "takes rows whose number the values decide")
        handler(walk, node)
        if not any(o in walk.rows or o in walk.sizes for o in node.outputs):
            walk.whole += [state.count for i in node.inputs if (state := walk.of(i)) is not None]
    for name in index.outputs:
        if name in walk.sizes:
            raise cannot(index.makers[name], "gives the number of rows as an output")
    return walk


def row_limits(walk: Walk, most: int) -> dict[str, int]:
    """By suppression, one row more than are ever used: only where its rows are cut and then leave the graph."""

    def needed(count: RowCount) -> float:
        if any(whole is count for whole in walk.whole):
            return math.inf
        children = [(child, cut) for parent, child, cut in walk.derived if parent is count]
        own = most + 1 if any(walk.rows[o].count is count for o in walk.index.outputs if o in walk.rows) else 0
        return max([own, *(math.inf if cut is None else min(cut, needed(child)) for child, cut in children)])

    limits = {name: needed(count) for name, count in walk.births.items()}
    return {name: int(limit) for name, limit in limits.items() if 0 < limit < math.inf}


def _count_names(walk: Walk, outputs: list[str]) -> dict[RowCount, str]:
    """What the outputs are called that count: `num_detections`, or by the first output of each count."""
    counts: dict[RowCount, str] = {}
    for output in outputs:
        counts.setdefault(walk.rows[output].count, output)
    if len(counts) == 1 and COUNT not in walk.index.names:
        return dict.fromkeys(counts, COUNT)
    return {
        c: walk.g.unique_name("count") if f"{o}_count" in walk.index.names else f"{o}_count" for c, o in counts.items()
    }


def _close(walk: Walk, output: str, count: str) -> FixedOutput:
    """Cut an output or fill it up, and set what does not count to zero."""
    g, state = walk.g, walk.rows[output]
    inner = f"{output}/all"
    walk.flush()
    for node in walk.nodes:
        node.input[:] = [inner if i == output else i for i in node.input]
        node.output[:] = [inner if o == output else o for o in node.output]
    value = g.value(output)
    value.name = inner
    own, rank = state.count.rows, len(walk.index.dims(output) or ())
    rows = walk.most if own is None else min(own, walk.most)
    if own is None:
        shape = [g.ints(rows) if a == state.axis else g.size(value, a) for a in range(rank)]
        zeros = g.expand(g.scalar(0, like=value), g.concat(*shape))
        zeros.dtype = value.dtype
        value = g.concat(value, zeros, axis=state.axis)
    if own != rows:
        value = g.slice(value, g.ints(0), g.ints(rows), [state.axis])
    valid = valid_mask(g, value, state.axis, state.count, rank)
    walk.emit_last(output, g.where(valid, value, g.scalar(0, like=value)))
    return FixedOutput(output, state.axis, rows, count)


def _write(model: onnx.ModelProto, walk: Walk, record: FixedRows) -> None:
    """The nodes, constants and outputs into the model; what was inferred of values with rows is no longer true."""
    graph = model.graph
    walk.flush()
    del graph.node[:]
    graph.node.extend(walk.nodes)
    graph.initializer.extend(walk.constants())
    names = {*walk.rows, *walk.sizes}
    infos = [v for v in graph.value_info if v.name not in names]
    del graph.value_info[:]
    graph.value_info.extend(infos)
    by_name = {o.output: o for o in record.outputs}
    for value in graph.output:
        if value.name in by_name:
            item = by_name[value.name]
            value.type.tensor_type.shape.dim[item.axis].Clear()
            value.type.tensor_type.shape.dim[item.axis].dim_value = item.rows
    for name in dict.fromkeys(o.count for o in record.outputs):
        graph.output.append(helper.make_tensor_value_info(name, INT32, [1]))
    set_metadata(model, FIXED_ROWS_KEY, record.as_text())
