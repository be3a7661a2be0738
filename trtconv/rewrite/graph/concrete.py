"""The concrete shape of any value of a model at given sizes of its inputs, without running the model.

First ONNX's own shape inference on a copy without weights whose inputs have integer dims. Where that stops (sizes
that went through Div, Range, Resize scales), a walk in graph order computes small integer values with ONNX's
reference ops and infers one node at a time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.inference import infer
from trtconv.core.model.opset import opset_of
from trtconv.core.shape_space.derived import size_of
from trtconv.core.tensors import TensorSpec
from trtconv.rewrite.graph.bodies import body_model, types_after
from trtconv.rewrite.graph.facts import Inferred, types_in
from trtconv.rewrite.graph.fragment import SHAPE_ARITHMETIC
from trtconv.rewrite.graph.index import DEFAULT_DOMAINS, Array, ValueType, type_of
from trtconv.rewrite.graph.result_size import require_affordable

SMALL = 1024
# Ops whose small results are computed, since shapes may follow from them.
ARITHMETIC = SHAPE_ARITHMETIC | {"ScatterND", "Reciprocal"}


class NamedShapes:
    """The shapes of a model's values in the names of its inputs' dims, inferred once for all points.

    The names are those of `specs`: where the graph calls a dim otherwise, inference runs again on a copy that uses
    the specs' names.
    """

    def __init__(self, inferred: Inferred, specs: tuple[TensorSpec, ...]) -> None:
        named = {s.name: s.dims for s in specs}
        own = {v.name: type_of(v.type).dims for v in inferred.light.graph.input if v.name in named}
        self._names = frozenset(d for s in specs for d in s.dims if isinstance(d, str))
        self._types = inferred.types if own == named else types_in(infer(_with_dims(inferred.light, named)).graph)

    def shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...] | None:
        """The shape at some sizes; None where a dim is not an integer and no name of an input's dim."""
        proto = self._types.get(name)
        dims = None if proto is None else type_of(proto).dims
        if dims is None or not all(isinstance(d, int) or d in self._names for d in dims):
            return None
        return tuple(size_of(d, sizes) for d in dims if d is not None)


class ConcreteShapes:
    """Shapes at one point. `light` is a model without weights (core.model.inference.without_weights)."""

    def __init__(self, light: onnx.ModelProto, specs: tuple[TensorSpec, ...], sizes: Mapping[str, int]) -> None:
        self._opsets = list(light.opset_import)
        self._opset = opset_of(light)
        graph = infer(with_sizes(light, specs, sizes)).graph
        self._nodes, self._initializers = light.graph.node, list(light.graph.initializer)
        self._types: dict[str, onnx.TypeProto] = types_in(graph)
        for tensor in graph.initializer:
            self._types[tensor.name] = helper.make_tensor_type_proto(tensor.data_type, list(tensor.dims))
        self._walked = False

    def shape(self, name: str) -> tuple[int, ...] | None:
        """The integer shape of a value, also one in a body, or None when it cannot be found without running."""
        dims = _integers(self._types.get(name))
        if dims is None and not self._walked:
            self._walk()
            dims = _integers(self._types.get(name))
        return dims

    def partial(self, name: str) -> ValueType:
        """What is known of a value, integers where the sizes give them."""
        proto = self._types.get(name)
        return ValueType() if proto is None else type_of(proto)

    def _walk(self) -> None:
        """One pass in graph order: small values first, then the types that they allow."""
        self._walked = True
        values: dict[str, Array] = {t.name: numpy_helper.to_array(t) for t in self._initializers}
        for node in self._nodes:
            if node.op_type in ARITHMETIC and node.domain in DEFAULT_DOMAINS:
                _evaluate(node, values, self._types, self._opset)
            if any(o and _integers(self._types.get(o)) is None for o in node.output):
                self._infer_node(node, values)
            for body in bodies_of(node):
                self._enter(node, body, values)

    def _enter(self, node: onnx.NodeProto, body: onnx.GraphProto, values: Mapping[str, Array]) -> None:
        """The same inside a body, with the types around it at this point."""
        inner = ConcreteShapes(body_model(node, body, self._types, values, self._opsets), (), {})
        inner._walk()
        for name, proto in {**inner._types, **types_after(node, body, inner._types)}.items():
            if _integers(self._types.get(name)) is None:
                self._types[name] = proto

    def _infer_node(self, node: onnx.NodeProto, values: Mapping[str, Array]) -> None:
        types = {i: self._types[i] for i in node.input if i in self._types}
        data = {i: numpy_helper.from_array(values[i], i) for i in node.input if i in values}
        version = next((o.version for o in self._opsets if o.domain == node.domain), self._opset)
        try:
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            output_types = onnx.shape_inference.infer_node_outputs(
                schema, node, types, data, opset_imports=self._opsets
            )
        except Exception:  # noqa: BLE001 - the C++ side raises several classes; an unknown shape is what remains
            return
        for name, proto in output_types.items():
            if _integers(proto) is not None or name not in self._types:
                self._types[name] = proto


def with_sizes(light: onnx.ModelProto, specs: tuple[TensorSpec, ...], sizes: Mapping[str, int]) -> onnx.ModelProto:
    """A copy whose inputs have the integer dims that follow from the sizes."""
    return _with_dims(light, {s.name: s.shape(sizes) for s in specs})


def _with_dims(light: onnx.ModelProto, shapes: Mapping[str, tuple[int | str, ...]]) -> onnx.ModelProto:
    model = onnx.ModelProto()
    model.CopyFrom(light)
    for value in model.graph.input:
        if value.name in shapes:
            value.CopyFrom(
                helper.make_tensor_value_info(value.name, value.type.tensor_type.elem_type, list(shapes[value.name]))
            )
    return model


def _integers(proto: onnx.TypeProto | None) -> tuple[int, ...] | None:
    dims = None if proto is None else type_of(proto).dims
    if dims is None or not all(isinstance(d, int) for d in dims):
        return None
    return tuple(d for d in dims if isinstance(d, int))


def _evaluate(node: onnx.NodeProto, values: dict[str, Array], types: dict[str, onnx.TypeProto], opset: int) -> None:
    """Compute a node's small outputs when its inputs are known; leave it otherwise."""
    if node.op_type in ("Shape", "Size"):
        shape = _integers(types.get(node.input[0]))
        if shape is None:
            return
        start = next((a.i for a in node.attribute if a.name == "start"), 0)
        end = next((a.i for a in node.attribute if a.name == "end"), None)
        results: list[Any] = [
            np.asarray(shape[start:end] if node.op_type == "Shape" else int(np.prod(shape)), np.int64)
        ]
    else:
        if any(i and i not in values for i in node.input):
            return
        try:
            results = run_node(node, [values.get(i) for i in node.input], opset)
        except Exception:  # noqa: BLE001 - whatever the reference op raises, the value stays unknown
            return
    for name, array in zip(node.output, results, strict=False):
        array = np.asarray(array)
        if array.size <= SMALL:
            values[name] = array
            types[name] = helper.make_tensor_type_proto(helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)


def run_node(node: onnx.NodeProto, inputs: list[Array | None], opset: int) -> list[Any]:
    """One node in ONNX's reference evaluator; a division of integers truncates as in ONNX Runtime.

    Raises MemoryError, before anything is computed, for a result of over 2^20 elements.
    """
    from onnx.reference import ReferenceEvaluator

    require_affordable(node, inputs)
    if node.op_type == "Div" and all(i is not None and i.dtype.kind in "iu" for i in inputs):
        a, b = inputs
        assert a is not None
        assert b is not None
        return [(np.sign(a) * np.sign(b) * (np.abs(a) // np.abs(b))).astype(a.dtype)]
    names = [n for n in dict.fromkeys(node.input) if n]
    graph = helper.make_graph(
        [node],
        "one",
        [onnx.ValueInfoProto(name=n) for n in names],
        [onnx.ValueInfoProto(name=o) for o in node.output if o],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    feed = {n: v for n, v in zip(node.input, inputs, strict=True) if n}
    results: list[Any] = list(ReferenceEvaluator(model).run(None, feed))
    return results
