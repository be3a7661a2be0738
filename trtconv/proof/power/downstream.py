"""The part of a graph behind a node, as a model of its own: what a fault cannot reach is not computed again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.model.bodies import values_read
from trtconv.proof.power.fault import Edit, FaultGraph

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Downstream:
    """Indices of the node and all behind it, in order; the values that they read from before; the outputs they make."""

    nodes: tuple[int, ...]
    reads: tuple[str, ...]
    outputs: tuple[str, ...]


def downstream_of(graph: FaultGraph, index: int, reads: list[set[str]]) -> Downstream:
    """What lies behind the node `index`. `reads` are `values_read` of all nodes; constants are not in what is read."""
    changed = set(graph.nodes[index].output)
    chosen = [index]
    for later in range(index + 1, len(graph.nodes)):
        if reads[later] & changed:
            chosen.append(later)
            changed |= set(graph.nodes[later].output)
    constants = {t.name for t in graph.model.graph.initializer}
    entering = set().union(*(reads[i] for i in chosen)) - changed
    # A Constant node costs nothing and is taken along.
    own = [
        i
        for i in range(len(graph.nodes))
        if graph.nodes[i].op_type == "Constant" and set(graph.nodes[i].output) & entering
    ]
    entering -= {n for i in own for n in graph.nodes[i].output}
    # An input with a default is a constant too: samples hold values of real inputs only.
    entering -= constants
    outputs = tuple(n for n in _outputs(graph) if n in changed)
    return Downstream(tuple(sorted({*chosen, *own})), tuple(sorted(entering)), outputs)


def _outputs(graph: FaultGraph) -> list[str]:
    return [v.name for v in graph.model.graph.output]


def everything(graph: FaultGraph) -> Downstream:
    """The whole graph, for a fault whose surroundings do not fit the memory."""
    constants = {t.name for t in graph.model.graph.initializer}
    inputs = tuple(v.name for v in graph.model.graph.input if v.name not in constants)
    return Downstream(tuple(range(len(graph.nodes))), inputs, tuple(_outputs(graph)))


def faulty_model(
    graph: FaultGraph, part: Downstream, index: int, edit: Edit, values: Mapping[str, Array]
) -> onnx.ModelProto:
    """The part of the graph with the node `index` replaced. `values` are arrays of what the part reads, for types."""
    import onnx
    from onnx import numpy_helper

    source = graph.model
    model = onnx.ModelProto(ir_version=source.ir_version, opset_import=source.opset_import, functions=source.functions)
    main = model.graph
    main.name = "faulty"
    needed: set[str] = set()
    for number in part.nodes:
        node = edit.node if number == index else graph.nodes[number]
        main.node.append(node)
        needed.update(values_read(node))
    typed = {v.name: v for v in source.graph.input}
    for name in part.reads:
        if name in typed:
            main.input.append(typed[name])
        else:
            element = onnx.helper.np_dtype_to_tensor_dtype(values[name].dtype)
            main.input.append(onnx.helper.make_tensor_value_info(name, element, [None] * values[name].ndim))
    fed = set(part.reads)
    main.initializer.extend(t for t in graph.weights if t.name in needed and t.name not in fed)
    main.initializer.extend(numpy_helper.from_array(v, n) for n, v in edit.constants.items())
    main.sparse_initializer.extend(source.graph.sparse_initializer)
    kinds = {v.name: v for v in source.graph.output}
    main.output.extend(onnx.ValueInfoProto(name=n, type=_loose(kinds[n])) for n in part.outputs)
    return model


def _loose(value: onnx.ValueInfoProto) -> Any:
    """The type without sizes: a fault may change them."""
    import onnx

    element = value.type.tensor_type.elem_type
    return onnx.helper.make_tensor_type_proto(element, None)
