"""FP64 parts in FP32. No TensorRT computes FP64: its parsers read every FP64 value as FP32, silently.

With FP64 left in the graph, ONNX Runtime would compare what no engine computes. Inputs and outputs keep their type and
get a Cast, as engines take and give FP32 there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.provenance import origin_of
from trtconv.core.targets import Target
from trtconv.rewrite.engine.whole import InitialGraph
from trtconv.rewrite.patterns.trees import DOMAIN as TREES
from trtconv.rewrite.patterns.trees import OPERATORS as TREE_OPERATORS
from trtconv.rewrite.patterns.trees import narrow_splits

FLOAT, DOUBLE = onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE
# Attributes that name an element type: Cast, the random and window operators, EyeLike.
TYPE_ATTRIBUTES = ("to", "dtype", "output_datatype", "softmax_precision", "stash_type")
# What these make of FP64 is not an FP64; those give indices beside it.
OTHER_TYPE = (
    "Cast", "Shape", "Size", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "ArgMax", "ArgMin", "IsNaN",
    "IsInf", "NonZero",
)  # fmt: skip
SUFFICES = (
    "compute that part outside of the engine, or so that FP32 suffices: take whole parts off before a sum grows, "
    "subtract the mean before squaring"
)
INDICES_TOO = ("TopK", "MaxPool", "Unique")


@dataclass(frozen=True)
class Narrowed:
    """A model without FP64 inside, and the nodes that computed in it: names, and the source line of the first.

    `lost` says where FP32 has too few digits, outside of what was declared.
    """

    model: onnx.ModelProto
    nodes: tuple[str, ...] = ()
    first: str = ""
    lost: str = ""

    @property
    def where(self) -> str | None:
        """The source line of the first such node, if it is known."""
        return self.first if ":" in self.first else None

    @property
    def notes(self) -> tuple[str, ...]:
        """What the user should know; nothing where there was no FP64."""
        if not self.nodes:
            return ()
        change = f"{len(self.nodes)} nodes from {self.first} on compute in FP32 instead of FP64, which TensorRT lacks"
        return tuple(filter(None, (change, self.lost)))


def without_float64(model: onnx.ModelProto) -> Narrowed:
    """A copy whose FP64 values are FP32, or the model itself when it has none (or they lie on disk)."""
    double_nodes = list(float64_nodes(model.graph))
    tensors = list(_float64_tensors(model.graph))
    if not (double_nodes or tensors) or any(t.data_location == onnx.TensorProto.EXTERNAL for t in tensors):
        return Narrowed(model)
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    _narrow_graph(copy.graph)
    _cast_inputs(copy.graph)
    _cast_outputs(copy.graph)
    origins = [origin_of(n) for n in double_nodes]
    unnamed = (double_nodes[0].name or double_nodes[0].output[0]) if double_nodes else "the constants"
    first = next((o.source for o in origins if o.source), unnamed)
    return Narrowed(copy, tuple(n.name or n.output[0] for n in double_nodes) or (tensors[0].name,), first)


def kept_of(narrowed: Narrowed, rewritten: onnx.ModelProto) -> tuple[str, ...]:
    """The nodes that computed in FP64 and are still there by their names, without casts."""
    names = {n.name or n.output[0] for n in rewritten.graph.node if n.op_type not in ("Cast", "Constant")}
    return tuple(n for n in narrowed.nodes if n in names)


def require_equal(before: InitialGraph, narrowed: Narrowed, target: Target) -> None:
    """Raise UnsupportedError when FP32 gives other outputs than FP64 at the points that rewriting compares at."""
    if not narrowed.nodes:
        return
    proof = before.compare(narrowed.model)
    if proof.passed is False:
        raise UnsupportedError(
            f"from {narrowed.first} on the module computes in FP64, which {target} reads as FP32 silently, and "
            f"the outputs then differ: {proof.note}",
            hint=SUFFICES,
            where=narrowed.where,
        )


def float64_nodes(graph: onnx.GraphProto, around: frozenset[str] = frozenset()) -> Iterator[onnx.NodeProto]:
    """The nodes that take or make FP64; `around` are FP64 values of the graphs around a body."""
    doubles = {v.name for v in graph.input if v.type.tensor_type.elem_type == DOUBLE}
    doubles |= {t.name for t in graph.initializer if t.data_type == DOUBLE} | around
    for node in graph.node:
        reads = any(i in doubles for i in node.input)
        makes = any(_names_double(a) or (a.HasField("t") and a.t.data_type == DOUBLE) for a in node.attribute)
        if reads or makes:
            yield node
        if makes or (reads and node.op_type not in OTHER_TYPE):
            doubles.update(node.output[:1] if node.op_type in INDICES_TOO else node.output)
        for body in bodies_of(node):
            yield from float64_nodes(body, frozenset(doubles))


def _names_double(attribute: onnx.AttributeProto) -> bool:
    return attribute.name in TYPE_ATTRIBUTES and attribute.i == DOUBLE


def _float64_tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from (t for t in graph.initializer if t.data_type == DOUBLE)
    for node in graph.node:
        yield from (a.t for a in node.attribute if a.HasField("t") and a.t.data_type == DOUBLE)
        for body in bodies_of(node):
            yield from _float64_tensors(body)


def _narrow_graph(graph: onnx.GraphProto) -> None:
    for tensor in [t for t in graph.initializer if t.data_type == DOUBLE]:
        _narrow_tensor(tensor)
    for node in graph.node:
        if node.domain == TREES and node.op_type in TREE_OPERATORS:
            narrow_splits(node)
        for attribute in node.attribute:
            if attribute.HasField("t") and attribute.t.data_type == DOUBLE:
                _narrow_tensor(attribute.t)
            elif _names_double(attribute):
                attribute.i = FLOAT
        for body in bodies_of(node):
            _narrow_graph(body)
            for value in (*body.input, *body.output):
                _narrow_value(value)
    for value in graph.value_info:
        _narrow_value(value)


def _narrow_tensor(tensor: onnx.TensorProto) -> None:
    limits = np.finfo(np.float32)
    wide = numpy_helper.to_array(tensor)
    # The lowest number of a type is a filling: it stays one, and does not become an infinity.
    finite = np.where(np.isfinite(wide), np.clip(wide, limits.min, limits.max), wide)
    tensor.CopyFrom(numpy_helper.from_array(finite.astype(np.float32).reshape(wide.shape), tensor.name))


def _narrow_value(value: onnx.ValueInfoProto) -> None:
    kind = value.type
    while kind.HasField("sequence_type") or kind.HasField("optional_type"):
        kind = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind.optional_type.elem_type
    if kind.HasField("tensor_type") and kind.tensor_type.elem_type == DOUBLE:
        kind.tensor_type.elem_type = FLOAT


def _cast_inputs(graph: onnx.GraphProto) -> None:
    """What uses an FP64 input uses a Cast of it."""
    initializer_names = {t.name for t in graph.initializer}
    double_inputs = [
        v.name for v in graph.input if v.type.tensor_type.elem_type == DOUBLE and v.name not in initializer_names
    ]
    casts = {name: f"{name}/float32" for name in double_inputs if name not in {v.name for v in graph.output}}
    _rename_uses(graph, casts)
    cast_nodes = [helper.make_node("Cast", [n], [c], name=f"{n}/to_float32", to=FLOAT) for n, c in casts.items()]
    nodes = [*cast_nodes, *graph.node]
    del graph.node[:]
    graph.node.extend(nodes)


def _cast_outputs(graph: onnx.GraphProto) -> None:
    """An FP64 output is a Cast of what was computed for it."""
    inputs = {v.name for v in graph.input}
    double_outputs = {v.name for v in graph.output if v.type.tensor_type.elem_type == DOUBLE and v.name not in inputs}
    inner = {name: f"{name}/float32" for name in double_outputs}
    _rename_uses(graph, inner)
    for node in graph.node:
        node.output[:] = [inner.get(o, o) for o in node.output]
    for tensor in graph.initializer:
        tensor.name = inner.get(tensor.name, tensor.name)
    for name, computed in inner.items():
        graph.node.append(helper.make_node("Cast", [computed], [name], name=f"{name}/to_float64", to=DOUBLE))


def _rename_uses(graph: onnx.GraphProto, names: dict[str, str]) -> None:
    for node in graph.node:
        node.input[:] = [names.get(i, i) for i in node.input]
        for body in bodies_of(node):
            _rename_uses(body, names)
            for value in body.output:
                value.name = names.get(value.name, value.name)
