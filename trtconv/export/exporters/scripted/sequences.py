"""Lists that a loop fills, as scan outputs: TensorRT has no sequences.

`ys.append(y)` is a SequenceInsert in the body of a Loop, and `torch.stack(ys, 1)` a ConcatFromSequence behind it. A
scan output of the Loop holds the same rows: [steps, ...].
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import (
    bodies_of,
    graphs_of,
    leading_to,
    replace_nodes,
    values_captured,
    values_read,
    walk_nodes,
)
from trtconv.core.model.file import load_model
from trtconv.export.exporters.scripted.elements_read import (
    axis_constant,
    flatten_steps,
    read_elements,
    reads_elements,
    rows_behind,
)

if TYPE_CHECKING:
    import onnx

# What a whole module that is a script is called in the module around it.
SCRIPT = "module.script."
OWN = "module."


@dataclass(frozen=True)
class FilledList:
    """A list that a Loop fills by so many elements a step: its place among the states, and the nodes that know it."""

    loop: onnx.NodeProto
    index: int
    start: onnx.NodeProto
    inserts: tuple[onnx.NodeProto, ...]
    joins: tuple[onnx.NodeProto, ...]

    @property
    def body(self) -> onnx.GraphProto:
        """The body of the Loop."""
        return next(bodies_of(self.loop))


def stack_sequences(path: Path, *, of_rows: bool = False) -> None:
    """Rewrite a file in place: lists as scan outputs, counts of steps in whole numbers, weights under their names.

    A list stays where its elements may differ in shape, their rank is not known, or its Loop is inside of another.
    `of_rows` says that what `cat` joins are single rows, and that lists of which elements are read have elements of one
    shape; the file raises where they are not.
    """
    import onnx

    model = load_model(path)
    for node in walk_nodes(model.graph.node):
        node.input[:] = [_own_name(n) for n in node.input]
    for weight in model.graph.initializer:
        weight.name = _own_name(weight.name)
    for graph in graphs_of(model.graph):
        _count_in_whole_numbers(graph)
        _name_outputs_apart(graph)
    while True:
        before = model.SerializeToString()
        filled = next(_filled_lists(model.graph, of_rows), None)
        if filled is None:
            break
        name = filled.loop.output[filled.index]
        stacked = _become_scan_output(filled)
        rank = _rank_of(model, stacked)
        if rank is None:
            model = onnx.ModelProto.FromString(before)
            break
        if len(filled.inserts) > 1:
            stacked, rank = flatten_steps(model.graph, stacked), rank - 1
        _join(model.graph, filled, stacked, rank)
        read_elements(model.graph, name, filled.start.input, stacked)
    replace_nodes(model.graph, leading_to(model.graph.node, [o.name for o in model.graph.output]))
    onnx.save(model, str(path))


def _own_name(name: str) -> str:
    return OWN + name.removeprefix(SCRIPT) if name.startswith(SCRIPT) else name


def _filled_lists(graph: onnx.GraphProto, of_rows: bool) -> Iterator[FilledList]:
    makers = {o: n for n in graph.node for o in n.output}
    for loop in graph.node:
        if loop.op_type != "Loop":
            continue
        (body,) = bodies_of(loop)
        for index, state in enumerate(loop.input[2:]):
            start = makers.get(state)
            if start is None or start.op_type not in ("SequenceEmpty", "SequenceConstruct"):
                continue
            inserts = _only_inserts(body, index)
            name = loop.output[index]
            joins = tuple(n for n in graph.node if name in values_read(n))
            own = [n for n in graph.node if state in values_read(n)] == [loop]
            if inserts and own and joins and all(_stacks(n, name, body, inserts, of_rows) for n in joins):
                yield FilledList(loop, index, start, inserts, joins)


def _only_inserts(body: onnx.GraphProto, index: int) -> tuple[onnx.NodeProto, ...]:
    """The nodes that put elements at the end of a list, one after the other; none where another knows the list."""
    before, after = body.input[2 + index].name, body.output[1 + index].name
    inserts: list[onnx.NodeProto] = []
    while not inserts or before != after:
        readers = [n for n in body.node if before in values_read(n)]
        if len(readers) != 1 or readers[0].op_type != "SequenceInsert" or len([i for i in readers[0].input if i]) != 2:
            return ()
        inserts += readers
        before = readers[0].output[0]
    behind = any(after in values_read(n) for n in body.node) or [o.name for o in body.output].count(after) > 1
    return () if behind else tuple(inserts)


def _stacks(
    join: onnx.NodeProto, list_name: str, body: onnx.GraphProto, inserts: Sequence[onnx.NodeProto], of_rows: bool
) -> bool:
    """True where elements become rows of an axis of their own: by `stack`, or by `cat` of elements of one row.

    So they may where they are read one by one.
    """
    if join.op_type != "ConcatFromSequence":
        return of_rows and reads_elements(join, list_name)
    if of_rows:
        return True
    axis = _attribute(join, "axis")
    return bool(_attribute(join, "new_axis")) or all(_unsqueezed(body, n.input[1]) == axis for n in inserts)


def _unsqueezed(graph: onnx.GraphProto, name: str) -> int | None:
    """The one axis that a value was given, where it was."""
    from onnx import numpy_helper

    constants = {n.output[0]: n.attribute[0].t for n in graph.node if n.op_type == "Constant" and n.attribute}
    node = next((n for n in graph.node if name in n.output), None)
    if node is None or node.op_type != "Unsqueeze" or node.input[1] not in constants:
        return None
    axes = numpy_helper.to_array(constants[node.input[1]]).reshape(-1)
    return int(axes[0]) if len(axes) == 1 else None


def _become_scan_output(filled: FilledList) -> str:
    """Take the list from the states of the Loop; its elements are a scan output, the last of the outputs.

    Gives the value of their rows: [steps, ...], with several elements a step [steps, elements, ...].
    """
    import onnx

    body, loop, index = filled.body, filled.loop, filled.index
    elements = [n.input[1] for n in filled.inserts]
    element = f"{filled.inserts[-1].output[0]}_element"
    stacked = f"{loop.output[index]}_stacked"
    nodes = [n for n in body.node if n not in filled.inserts]
    if len(elements) == 1:
        nodes.append(onnx.helper.make_node("Identity", elements, [element], f"{element}/"))
    else:
        nodes.append(axis_constant(f"{element}_axis", 0))
        rows = [f"{element}_{number}" for number in range(len(elements))]
        for one, row in zip(elements, rows, strict=True):
            nodes.append(onnx.helper.make_node("Unsqueeze", [one, f"{element}_axis"], [row], row))
        nodes.append(onnx.helper.make_node("Concat", rows, [element], f"{element}/", axis=0))
    replace_nodes(body, nodes)
    del body.input[2 + index]
    del body.output[1 + index]
    body.output.add().name = element
    del loop.input[2 + index]
    del loop.output[index]
    loop.output.append(stacked)
    return stacked


def _rank_of(model: onnx.ModelProto, name: str) -> int | None:
    """The rank of a value of the main graph, where it can be inferred."""
    import onnx

    part = onnx.ModelProto()
    part.CopyFrom(model)
    replace_nodes(part.graph, [n for n in part.graph.node if n.op_type != "ConcatFromSequence"])
    try:
        inferred = onnx.shape_inference.infer_shapes(part, data_prop=True)
    except Exception:  # noqa: BLE001 - onnx raises errors of many kinds; the list stays then
        return None
    value = next((v for v in inferred.graph.value_info if v.name == name), None)
    if value is None or not value.type.tensor_type.HasField("shape"):
        return None
    return len(value.type.tensor_type.shape.dim)


def _join(graph: onnx.GraphProto, filled: FilledList, stacked: str, rank: int) -> None:
    """In place of each join: the first elements, the rows of the scan output behind them, their axis in its place."""
    import onnx

    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        if node not in filled.joins or node.op_type != "ConcatFromSequence":
            nodes.append(node)
            continue
        new, name = bool(_attribute(node, "new_axis")), node.output[0]
        # An element of `cat` has the axis already, with one row.
        axis = _attribute(node, "axis") % (rank if new else rank - 1)
        before, whole = rows_behind(filled.start.input, stacked, name)
        nodes += before
        if not new:
            nodes.append(axis_constant(f"{name}_axis", axis + 1))
            squeezed = f"{name}_squeezed"
            nodes.append(onnx.helper.make_node("Squeeze", [whole, f"{name}_axis"], [squeezed], squeezed))
            whole = squeezed
        count = rank if new else rank - 1
        order = [*range(1, axis + 1), 0, *range(axis + 1, count)]
        nodes.append(onnx.helper.make_node("Transpose", [whole], [name], node.name, perm=order))
        nodes[-1].doc_string = node.doc_string
    replace_nodes(graph, [n for n in nodes if n != filled.start])


def _name_outputs_apart(graph: onnx.GraphProto) -> None:
    """A name for each output of a body, where two variables are one value; ONNX Runtime mixes them up."""
    import onnx

    names: set[str] = set()
    for output in graph.output:
        if output.name in names:
            name = f"{output.name}_again_{len(names)}"
            graph.node.append(onnx.helper.make_node("Identity", [output.name], [name], name))
            output.name = name
        names.add(output.name)


def _count_in_whole_numbers(graph: onnx.GraphProto) -> None:
    """ceil(float(n) / step), by which a script counts the steps of a Loop, as (n + step - 1) / step.

    Below zero the two differ, and either means that there is no step.
    """
    import numpy as np
    import onnx

    makers = {o: n for n in graph.node for o in n.output}
    constants = {
        n.output[0]: onnx.numpy_helper.to_array(n.attribute[0].t)
        for n in graph.node
        if n.op_type == "Constant" and n.attribute and n.attribute[0].HasField("t")
    }
    nodes: list[onnx.NodeProto] = []
    for node in graph.node:
        links = _leading_through(node, ("Cast", "Ceil", "Div", "Cast"), makers)
        step = constants.get(links[2].input[1]) if links else None
        if not _only_counts(graph, node) or step is None or step.size != 1 or step != np.round(step) or step < 1:
            nodes.append(node)
            continue
        name, counted = node.output[0], f"{node.output[0]}_counted"
        whole = onnx.TensorProto.INT64
        nodes.append(onnx.helper.make_node("Cast", [links[3].input[0]], [counted], counted, to=whole))
        for suffix, number in (("more", int(step) - 1), ("step", int(step))):
            value = onnx.numpy_helper.from_array(np.array(number, np.int64), f"{name}_{suffix}")
            nodes.append(onnx.helper.make_node("Constant", [], [value.name], value.name, value=value))
        nodes.append(onnx.helper.make_node("Add", [counted, f"{name}_more"], [f"{name}_sum"], f"{name}_sum"))
        nodes.append(onnx.helper.make_node("Div", [f"{name}_sum", f"{name}_step"], [name], node.name))
    replace_nodes(graph, nodes)


def _leading_through(
    node: onnx.NodeProto, operators: Sequence[str], makers: Mapping[str, onnx.NodeProto]
) -> list[onnx.NodeProto]:
    """The node and those that lead to it by their first inputs, where they are these operators; else none."""
    links: list[onnx.NodeProto] = []
    current: onnx.NodeProto | None = node
    for operator in operators:
        if current is None or current.op_type != operator:
            return []
        links.append(current)
        current = makers.get(current.input[0])
    return links


def _only_counts(graph: onnx.GraphProto, node: onnx.NodeProto) -> bool:
    """True for what is the number of steps of Loops, and nothing else."""
    name = node.output[0]
    readers = [n for n in graph.node if name in values_read(n)]
    counts = all(n.op_type == "Loop" and n.input[0] == name and name not in n.input[1:] for n in readers)
    inside = any(name in values_captured(body) for n in readers for body in bodies_of(n))
    return bool(readers) and counts and not inside and name not in {o.name for o in graph.output}


def _attribute(node: onnx.NodeProto, name: str) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name), 0)
