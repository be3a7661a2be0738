"""What ONNX's shape inference knows of a model, scope by scope, without touching its weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import onnx

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.file import signature
from trtconv.core.model.inference import infer, without_weights
from trtconv.core.model.opset import opset_of
from trtconv.core.targets import Target
from trtconv.rewrite.graph.captured import with_constants_inside
from trtconv.rewrite.graph.contrib_types import stand_in
from trtconv.rewrite.graph.index import Graph, ValueType, type_of


def types_in(graph: onnx.GraphProto) -> dict[str, onnx.TypeProto]:
    """The types that stand in a graph's value infos, inputs and outputs."""
    return {v.name: v.type for v in (*graph.value_info, *graph.input, *graph.output)}


class Types(Mapping[str, ValueType]):
    """Inferred types over recorded ones, merged when one is asked for: most values of a large graph never are.

    Sizes of inputs count before the names that an exporter gave to others. Many values are of few types, and reading
    one out of its message costs more than serializing it to look it up.
    """

    def __init__(
        self,
        recorded: Mapping[str, onnx.TypeProto],
        inferred: Mapping[str, onnx.TypeProto],
        input_dims: frozenset[str] = frozenset(),
    ) -> None:
        self._recorded, self._inferred, self._input_dims = recorded, inferred, input_dims
        self._merged: dict[str, ValueType] = {}
        self._read: dict[tuple[bytes, bytes], ValueType] = {}

    def __getitem__(self, name: str) -> ValueType:
        merged = self._merged.get(name)
        if merged is None:
            new, old = self._inferred.get(name), self._recorded.get(name)
            if new is None and old is None:
                raise KeyError(name)
            key = (b"" if old is None else old.SerializeToString(), b"" if new is None else new.SerializeToString())
            merged = self._read.get(key)
            if merged is None:
                before, after = (ValueType() if p is None else type_of(p) for p in (old, new))
                merged = self._read[key] = _merge(before, after, self._input_dims)
            self._merged[name] = merged
        return merged

    def __contains__(self, name: object) -> bool:
        return name in self._recorded or name in self._inferred

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._recorded, *self._inferred]))

    def __len__(self) -> int:
        return len(set(self._recorded) | set(self._inferred))


@dataclass(frozen=True)
class Inferred:
    """A model without weights, and the same after inference: what index and sample points are made from."""

    light: onnx.ModelProto
    model: onnx.ModelProto

    @cached_property
    def types(self) -> dict[str, onnx.TypeProto]:
        """The inferred types of the main graph's values."""
        return types_in(self.model.graph)


def inferred(model: onnx.ModelProto) -> Inferred:
    """Infer once, for everything that wants to know."""
    light = without_weights(model)
    alike = stand_in(light.graph)
    model_with_types = infer(_without_own_names(with_constants_inside(light)))
    types = types_in(model_with_types.graph) if alike else {}
    for name, other in alike.items():
        if other in types:
            model_with_types.graph.value_info.append(onnx.ValueInfoProto(name=name, type=types[other]))
    return Inferred(light, model_with_types)


def _without_own_names(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy whose outputs name no size that no input has: inference leaves such a name where it knows another."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    input_dims = _input_dims(model.graph)
    for value in copy.graph.output:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param and dim.dim_param not in input_dims:
                dim.ClearField("dim_param")
    return copy


def _input_dims(graph: onnx.GraphProto) -> frozenset[str]:
    return frozenset(d.dim_param for v in graph.input for d in v.type.tensor_type.shape.dim if d.dim_param)


def index_model(model: onnx.ModelProto, target: Target, facts: Inferred | None = None) -> Graph:
    """Index a model: inferred types, the recorded ones where inference knows nothing. `facts` is inferred(model)."""
    inference = facts or inferred(model)
    types = Types(types_in(model.graph), inference.types, _input_dims(model.graph))
    graph = Graph(model.graph, types, opset=opset_of(model), target=target)
    graph.ranges = {name: (r.min, r.max) for name, r in signature(model).space.dims}
    for scope in graph.scopes():
        scope.functions = tuple(model.functions)
    _fill_bodies(graph, inference.model.graph)
    return graph


def _merge(old: ValueType, new: ValueType, input_dims: frozenset[str]) -> ValueType:
    dims = new.dims if new.dims is not None else old.dims
    if new.dims is not None and old.dims is not None and len(new.dims) == len(old.dims):
        dims = tuple(_better(a, b, input_dims) for a, b in zip(new.dims, old.dims, strict=True))
    return ValueType(new.dtype or old.dtype, dims)


def _better(inferred: int | str | None, recorded: int | str | None, input_dims: frozenset[str]) -> int | str | None:
    """An integer or a size of an input that inference found, else the exporter's name, else whatever there is."""
    if isinstance(inferred, int) or inferred in input_dims:
        return inferred
    return recorded if isinstance(recorded, str) else inferred or None


def _fill_bodies(graph: Graph, inferred: onnx.GraphProto) -> None:
    """Give the bodies the types that inference wrote into the parallel copy."""
    for node, twin in zip(list(graph.nodes.values()), inferred.node, strict=False):
        if not node.bodies:
            continue
        for body, other in zip(node.bodies, bodies_of(twin), strict=True):
            body.types = Types(types_in(body.proto), types_in(other))
            _fill_bodies(body, other)
