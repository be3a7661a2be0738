"""QuantizeLinear and DequantizeLinear put into a graph by a plan: which value, with which scale, in which type.

TensorRT reads a pair as "this value is int8 (or FP8) here" and fuses it into the layers on both sides; ONNX Runtime
computes it. Where the scales come from is not decided here.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.errors import InvalidRequestError, UnsupportedError, did_you_mean
from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import RULE_KEY
from trtconv.core.precision import FP8, INT8, Precision, typed_as
from trtconv.core.targets import Target
from trtconv.rewrite.graph.facts import index_model
from trtconv.rewrite.graph.index import Array, Graph

RULE = "quantize"
# ONNX operator schemas: scales per axis came with opset 13, 16-bit inputs and FP8 with 19.
PER_AXIS_OPSET, NEWER_TYPES_OPSET, FIRST_OPSET = 13, 19, 10


@dataclass(frozen=True)
class Quantization:
    """How one value is quantised: q = saturate(round(x / scale) + zero_point).

    One `scale` (over zero) and zero point for the whole tensor, or one per slice along `axis`; no `zero_point` means 0.
    `precision` is INT8 or FP8 (E4M3, whose zero point is always 0). Raises InvalidRequestError for anything else.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...] = ()
    axis: int | None = None
    precision: Precision = INT8

    def __post_init__(self) -> None:
        """Check the numbers."""
        if self.precision not in (INT8, FP8):
            raise InvalidRequestError(f"a value cannot be quantised to {self.precision.name}", hint="int8 or fp8")
        if not self.scale or (self.axis is None and len(self.scale) != 1):
            raise InvalidRequestError(f"{len(self.scale)} scales without an axis", hint="one scale, or an axis")
        wrong = next((s for s in self.scale if not (math.isfinite(s) and s > 0.0)), None)
        if wrong is not None:
            raise InvalidRequestError(f"a scale must be finite and over 0, got {wrong}", hint="calibrate again")
        if self.zero_point and len(self.zero_point) != len(self.scale):
            raise InvalidRequestError(
                f"{len(self.zero_point)} zero points for {len(self.scale)} scales", hint="as many of both"
            )
        low, high = (-128, 127) if self.precision is INT8 else (0, 0)
        if any(not low <= z <= high for z in self.zero_point):
            raise InvalidRequestError(
                f"a zero point of {self.precision.name} must be from {low} to {high}, got {self.zero_point}",
                hint="leave it out for 0",
            )

    def zeros(self) -> Array:
        """The zero points in the quantised type, one per scale."""
        return np.array(self.zero_point or (0,) * len(self.scale)).astype(self.precision.numpy())

    def quantise(self, values: Array) -> tuple[Array, int]:
        """The values as QuantizeLinear gives them (ties to even, saturated), and how many of them were saturated."""
        shape = [1] * values.ndim
        if self.axis is not None:
            shape[self.axis] = len(self.scale)
        scale = np.array(self.scale, np.float32).reshape(shape)
        scaled = values.astype(np.float32) / scale
        if self.precision is INT8:
            scaled = np.rint(scaled) + self.zeros().astype(np.float32).reshape(shape)
        low, high = (-128.0, 127.0) if self.precision is INT8 else (-FP8.largest, FP8.largest)
        saturated = int(np.count_nonzero((scaled < low) | (scaled > high)))
        return np.clip(scaled, low, high).astype(self.precision.numpy()), saturated


@dataclass(frozen=True)
class QuantizedModel:
    """The model with its pairs. `weights` of them are constants, stored quantised with a DequantizeLinear alone;
    `saturated` counts the elements of these that lie beyond the range of their scale."""

    model: onnx.ModelProto
    pairs: int
    weights: int
    saturated: int


@dataclass(frozen=True)
class Pair:
    """One value's QuantizeLinear and DequantizeLinear, read by `readers` (node name, input index), or by all nodes.

    A `stored` constant is kept quantised, with a DequantizeLinear alone; TensorRT 8.6 wants both nodes at a weight.
    """

    value: str
    quantization: Quantization
    readers: frozenset[tuple[str, int]] | None = None
    stored: bool = True


def insert_pairs(model: onnx.ModelProto, pairs: Sequence[Pair], target: Target) -> QuantizedModel:
    """A copy of the model in which the readers of each pair read its value through it.

    Outputs of the graph and of bodies keep the exact value, and a value that a QuantizeLinear reads already keeps that
    one. External weights are not read: they get both nodes. Raises InvalidRequestError for a value that is not in the
    graph, is not a float tensor, has another number of slices than scales, or for an opset that cannot say it;
    UnsupportedError for what the target has not.
    """
    result = onnx.ModelProto()
    result.CopyFrom(model)
    root = index_model(result, target)
    owners = {name: (scope, proto) for scope, proto in _scopes(root, result.graph) for name in _values_of(proto)}
    for pair in pairs:
        if pair.value not in owners:
            near = did_you_mean(pair.value, owners)
            raise InvalidRequestError(
                f"no value is called '{pair.value}'{near}", hint="name an output of a node, or a weight"
            )
        _require_sayable(pair.value, pair.quantization, owners[pair.value][0], opset_of(result), target)
    names = set(owners) | {str(n.name) for _, proto in _scopes(root, result.graph) for n in proto.node}
    weights = saturated = 0
    for pair in pairs:
        scope, proto = owners[pair.value]
        overflow = _Insertion(proto, pair, scope.dtype(pair.value), names).insert()
        weights += overflow is not None
        saturated += overflow or 0
    return QuantizedModel(result, len(pairs), weights, saturated)


def _scopes(graph: Graph, proto: onnx.GraphProto) -> Iterator[tuple[Graph, onnx.GraphProto]]:
    """Each scope of the index with the protobuf that it was made from."""
    yield graph, proto
    for node in graph.nodes.values():
        for body, body_proto in zip(node.bodies, bodies_of(node.proto), strict=True):
            yield from _scopes(body, body_proto)


def _values_of(proto: onnx.GraphProto) -> list[str]:
    outputs = [name for node in proto.node for name in node.output if name]
    return [*(t.name for t in proto.initializer), *(v.name for v in proto.input), *outputs]


def _require_sayable(name: str, quantization: Quantization, graph: Graph, opset: int, target: Target) -> None:
    precision = quantization.precision
    if not precision.is_in(target):
        raise UnsupportedError(f"{target} has no {precision.name}", hint="choose another precision or target")
    if any(quantization.zero_point):
        raise UnsupportedError(
            f"'{name}': {target} quantises symmetrically, the zero point {quantization.zero_point} is not 0",
            hint="calibrate with symmetric ranges",
        )
    number = graph.dtype(name)
    kind = typed_as(number)
    if kind is None:
        raise InvalidRequestError(f"'{name}' is not a float tensor, or its type is not known", hint="leave it out")
    needed = NEWER_TYPES_OPSET if precision is FP8 or kind.is_half else FIRST_OPSET
    needed = max(needed, PER_AXIS_OPSET if quantization.axis is not None else FIRST_OPSET)
    if opset < needed:
        raise InvalidRequestError(
            f"'{name}' needs opset {needed} to be quantised so, the graph has {opset}", hint="export with that opset"
        )
    _require_slices(name, quantization, graph)


def _require_slices(name: str, quantization: Quantization, graph: Graph) -> None:
    dims, axis = graph.dims(name), quantization.axis
    if axis is None or dims is None:
        return
    if not 0 <= axis < len(dims):
        raise InvalidRequestError(f"'{name}' has {len(dims)} axes, not an axis {axis}", hint="count axes from 0")
    size = dims[axis]
    if isinstance(size, int) and size != len(quantization.scale):
        raise InvalidRequestError(
            f"axis {axis} of '{name}' has {size} slices, the plan {len(quantization.scale)} scales",
            hint="give one scale per slice",
        )


class _Insertion:
    """One value's nodes in the graph that owns it."""

    def __init__(self, graph: onnx.GraphProto, pair: Pair, elem_type: int, names: set[str]) -> None:
        self._graph, self._pair, self._elem_type, self._names = graph, pair, elem_type, names
        self._name, self._quantization = pair.value, pair.quantization

    def insert(self) -> int | None:
        """Insert; returns the saturated elements of a weight that is now stored quantised, None for other values."""
        weight = next((t for t in self._graph.initializer if t.name == self._name), None)
        is_input = any(v.name == self._name for v in self._graph.input)
        in_memory = weight is not None and weight.data_location != onnx.TensorProto.EXTERNAL
        stored = in_memory and not is_input and self._pair.stored
        index, origin = self._producer()
        scale, zero = self._parameters()
        dequantized = self._new_name("dequantized")
        self._redirect(self._graph, dequantized)
        saturated: int | None = None
        if stored and weight is not None:
            values, saturated = self._quantization.quantise(numpy_helper.to_array(weight))
            quantized = self._add_constant("quantized", values)
            new = [self._node("DequantizeLinear", quantized, scale, zero, dequantized)]
            if not self._is_read():
                self._graph.initializer.remove(weight)
        else:
            quantized = self._new_name("quantized")
            new = [
                self._node("QuantizeLinear", self._name, scale, zero, quantized),
                self._node("DequantizeLinear", quantized, scale, zero, dequantized),
            ]
        for node in new:
            node.metadata_props.extend(origin)
            node.metadata_props.add(key=RULE_KEY, value=RULE)
        for offset, node in enumerate(new):
            self._graph.node.insert(index + offset, node)
        return saturated

    def _producer(self) -> tuple[int, list[onnx.StringStringEntryProto]]:
        """Where the nodes go, and the origin that they share with the node that makes the value."""
        for index, node in enumerate(self._graph.node):
            if self._name in node.output:
                return index + 1, [p for p in node.metadata_props if p.key != RULE_KEY]
        return 0, []

    def _parameters(self) -> tuple[str, str]:
        dtype = helper.tensor_dtype_to_np_dtype(self._elem_type)
        scale, zeros = np.array(self._quantization.scale, np.float32).astype(dtype), self._quantization.zeros()
        if self._quantization.axis is None:
            scale, zeros = scale.reshape(()), zeros.reshape(())
        return self._add_constant("scale", scale), self._add_constant("zero_point", zeros)

    def _add_constant(self, role: str, values: Array) -> str:
        name = self._new_name(role)
        self._graph.initializer.append(numpy_helper.from_array(values, name))
        return name

    def _new_name(self, role: str) -> str:
        name, count = f"{self._name}_{role}", 1
        while name in self._names:
            name, count = f"{self._name}_{role}_{count}", count + 1
        self._names.add(name)
        return name

    def _node(self, op: str, value: str, scale: str, zero: str, output: str) -> onnx.NodeProto:
        axis = {} if self._quantization.axis is None else {"axis": self._quantization.axis}
        return helper.make_node(op, [value, scale, zero], [output], self._new_name(op), **axis)

    def _redirect(self, graph: onnx.GraphProto, new: str) -> None:
        """The readers here and in bodies read the new value, but not a QuantizeLinear that is there already."""
        readers = self._pair.readers
        for node in graph.node:
            if node.op_type != "QuantizeLinear":
                for index, name in enumerate(node.input):
                    if name == self._name and (readers is None or (node.name or node.output[0], index) in readers):
                        node.input[index] = new
            for body in bodies_of(node):
                self._redirect(body, new)

    def _is_read(self) -> bool:
        def reads(graph: onnx.GraphProto) -> bool:
            bodies = [body for node in graph.node for body in bodies_of(node)]
            outputs = any(v.name == self._name for v in graph.output)
            return outputs or any(self._name in n.input for n in graph.node) or any(map(reads, bodies))

        return reads(self._graph)
