"""What the conditions ask: constants, types, ranks and uses of a graph, and the plain facts of a node."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtconv.core.dtypes import dtype_from_onnx
from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import bodies_of, graphs_of
from trtconv.core.model.file import external_files
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import Origin, origin_of

if TYPE_CHECKING:
    import onnx

SMALL = 64


@dataclass(frozen=True)
class NodeFacts:
    """One node; `top` is the index of the main graph's node that it is or is inside of."""

    op: str
    domain: str
    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any]
    origin: Origin
    top: int
    branch_ranks: tuple[tuple[int | None, ...], ...] = ()

    def attribute(self, name: str, default: Any) -> Any:
        """An attribute as a Python value."""
        return self.attributes.get(name, default)

    def input(self, index: int) -> str:
        """The name of an input, empty when it is omitted."""
        return self.inputs[index] if index < len(self.inputs) else ""


@dataclass(frozen=True)
class GraphFacts:
    """A model read once; names of bodies are among the rest (ONNX forbids that they shadow). `fed` are its inputs."""

    opset: int
    nodes: tuple[NodeFacts, ...]
    constants: Mapping[str, onnx.TensorProto | None]
    types: Mapping[str, tuple[int, int | None]]
    used: frozenset[str] = field(default_factory=frozenset)
    fed: frozenset[str] = field(default_factory=frozenset)

    def is_constant(self, name: str) -> bool:
        """True for an initializer or the output of a Constant node."""
        return name in self.constants

    def small_constant(self, name: str) -> list[float] | None:
        """The elements of a constant of at most 64 elements, or None."""
        import onnx
        from onnx import numpy_helper

        tensor = self.constants.get(name)
        if tensor is None or tensor.data_location == onnx.TensorProto.EXTERNAL:
            return None
        array = numpy_helper.to_array(tensor).reshape(-1)
        return [float(v) for v in array] if array.size <= SMALL else None

    def exceeds_bits(self, name: str, bits: int) -> bool:
        """True for a constant of 64-bit integers with an element that does not fit a signed integer of `bits`."""
        import onnx
        from onnx import numpy_helper

        tensor = self.constants.get(name)
        if tensor is None or tensor.data_type != onnx.TensorProto.INT64:
            return False
        if tensor.data_location == onnx.TensorProto.EXTERNAL:
            return False
        array = numpy_helper.to_array(tensor)
        top = 1 << (bits - 1)
        return bool(((array < -top) | (array >= top)).any())

    def is_fed(self, name: str) -> bool:
        """True for an input of the model."""
        return name in self.fed

    def dtype(self, name: str) -> str:
        """The element type of a value, empty when not known; ONNX's own name for a type that trtconv does not know."""
        import onnx

        number = self.types.get(name, (0, None))[0]
        try:
            return dtype_from_onnx(number).name if number else ""
        except TrtconvError:
            onnx_names: dict[int, str] = {v: k.lower() for k, v in onnx.TensorProto.DataType.items()}
            return onnx_names.get(number, "")

    def rank(self, name: str) -> int | None:
        """The rank of a value, None when not known."""
        return self.types.get(name, (0, None))[1]

    def is_used(self, name: str) -> bool:
        """True when a node reads the value or the graph returns it."""
        return name in self.used


def read_facts(model: onnx.ModelProto) -> GraphFacts:
    """Everything that the tables ask of a model; types that the file does not say are inferred where that works."""
    nodes: list[NodeFacts] = []
    constants: dict[str, onnx.TensorProto | None] = {}
    types = _types(model)
    used = {v.name for v in model.graph.output}
    for graph in graphs_of(model.graph):
        constants |= {t.name: t for t in graph.initializer}
        used |= {n for node in graph.node for n in node.input} | {v.name for v in graph.output}
        constants |= {n.output[0]: _constant(n) for n in graph.node if n.op_type == "Constant"}
    nodes = list(_nodes(model.graph, types))
    opset = opset_of(model, 0)
    fed = frozenset(v.name for v in model.graph.input) - constants.keys()
    return GraphFacts(opset, tuple(nodes), constants, types, frozenset(used), fed)


def _nodes(
    graph: onnx.GraphProto, types: Mapping[str, tuple[int, int | None]], top: int | None = None
) -> Iterator[NodeFacts]:
    for index, node in enumerate(graph.node):
        top_index = index if top is None else top
        bodies = list(bodies_of(node))
        ranks = zip(*([types.get(v.name, (0, None))[1] for v in b.output] for b in bodies), strict=False)
        domain = "" if node.domain == "ai.onnx" else node.domain
        yield NodeFacts(
            node.op_type,
            domain,
            node.name,
            tuple(node.input),
            tuple(node.output),
            _attributes(node),
            origin_of(node),
            top_index,
            tuple(ranks) if node.op_type == "If" else (),
        )
        for body in bodies:
            yield from _nodes(body, types, top_index)


def _attributes(node: onnx.NodeProto) -> dict[str, Any]:
    import onnx

    kinds = onnx.AttributeProto
    plain = {}
    for attribute in node.attribute:
        if attribute.type in (kinds.INT, kinds.INTS, kinds.FLOAT, kinds.FLOATS, kinds.STRING):
            value = onnx.helper.get_attribute_value(attribute)
            plain[attribute.name] = value.decode(errors="replace") if isinstance(value, bytes) else value
    return plain


def _constant(node: onnx.NodeProto) -> onnx.TensorProto | None:
    import onnx
    from onnx import numpy_helper

    for attribute in node.attribute:
        if attribute.HasField("t"):
            return attribute.t
        if attribute.name.startswith("value_") and attribute.type != onnx.AttributeProto.STRING:
            import numpy as np

            return numpy_helper.from_array(np.asarray(onnx.helper.get_attribute_value(attribute)))
    return None


def _types(model: onnx.ModelProto) -> dict[str, tuple[int, int | None]]:
    import onnx

    inferred = model
    if not external_files(model):
        with contextlib.suppress(onnx.shape_inference.InferenceError, ValueError, RuntimeError):
            inferred = onnx.shape_inference.infer_shapes(model)
    value_types: dict[str, tuple[int, int | None]] = {}
    for graph in graphs_of(inferred.graph):
        for tensor in graph.initializer:
            value_types[tensor.name] = (tensor.data_type, len(tensor.dims))
        for value in (*graph.value_info, *graph.input, *graph.output):
            kind = value.type.tensor_type
            if value.type.HasField("tensor_type"):
                value_types[value.name] = (kind.elem_type, len(kind.shape.dim) if kind.HasField("shape") else None)
    return value_types
