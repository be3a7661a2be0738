"""ONNX's operators as methods of a graph-surgeon graph: `g.mul(x, 2.0)` in the place of a `layer` call.

They are methods of a subclass and not functions of `@gs.Graph.register()`: that registry is one for the whole process,
so a surgery script that registers an `add` of its own would change what trtconv's rules make. What users register is
still found, under every name that is not in this file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_graphsurgeon as gs
from onnx import helper, numpy_helper
from onnx_graphsurgeon.importers.onnx_importer import get_numpy_type
from onnx_graphsurgeon.ir.tensor import LazyValues

from trtconv.rewrite.graph.index import Array

INT64 = onnx.TensorProto.INT64
INTEGERS = (onnx.TensorProto.INT32, INT64)
FLOAT = onnx.TensorProto.FLOAT
BOOL = onnx.TensorProto.BOOL
# A graph-surgeon tensor, or the name of a value of the graph around; "" is an input that is left out.
Value: TypeAlias = str | gs.Tensor
_VALUES = (str, gs.Tensor)


def _operator(op_type: str) -> Callable[..., Any]:
    def add_node(self: OperatorGraph, *inputs: Any, **attributes: Any) -> Any:
        return self.op(op_type, *inputs, **attributes)

    add_node.__doc__ = f"Add a node {op_type} and return its output."
    return add_node


class OperatorGraph(gs.Graph):  # type: ignore[misc]
    """A graph-surgeon graph with a method for each operator that rules use. Inputs are tensors, arrays or numbers.

    A number gets the element type of the first input that has one. Forms that differ by opset (axes as attribute or
    as input) are hidden here, so that a rule is written once.
    """

    add, sub, mul, div = (_operator(o) for o in ("Add", "Sub", "Mul", "Div"))
    pow, mod, matmul, where = (_operator(o) for o in ("Pow", "Mod", "MatMul", "Where"))
    maximum, minimum, clip, neg = (_operator(o) for o in ("Max", "Min", "Clip", "Neg"))
    absolute, floor, ceil, round = (_operator(o) for o in ("Abs", "Floor", "Ceil", "Round"))
    sqrt, reciprocal, exp, log = (_operator(o) for o in ("Sqrt", "Reciprocal", "Exp", "Log"))
    sigmoid, tanh, erf, softmax = (_operator(o) for o in ("Sigmoid", "Tanh", "Erf", "Softmax"))
    relu, softplus, identity, expand = (_operator(o) for o in ("Relu", "Softplus", "Identity", "Expand"))
    equal, less, less_equal, greater = (_operator(o) for o in ("Equal", "Less", "LessOrEqual", "Greater"))
    logical_and, logical_or, logical_not = (_operator(o) for o in ("And", "Or", "Not"))
    gather, gather_elements, pad, range = (_operator(o) for o in ("Gather", "GatherElements", "Pad", "Range"))
    conv, grid_sample, shape = (_operator(o) for o in ("Conv", "GridSample", "Shape"))

    def unique_name(self, stem: str) -> str:
        """A name for a node or a value that nothing in the graph has."""
        raise NotImplementedError

    def op(self, op_type: str, *inputs: Any, domain: str = "", **attributes: Any) -> Any:
        """Add a node with one output and return the output. An input that is "" is left out."""
        return self.ops(op_type, 1, *inputs, domain=domain, **attributes)[0]

    def ops(self, op_type: str, count: int, *inputs: Any, domain: str = "", **attributes: Any) -> tuple[Any, ...]:
        """Add a node with `count` outputs and return them."""
        name = self.unique_name(op_type)
        tensors = self.tensors_of(inputs)
        dtype = output_dtype(op_type, tensors, attributes)
        names = [name] if count == 1 else [f"{name}:{i}" for i in range(count)]
        outputs = [gs.Variable(n, dtype=dtype) for n in names]
        attrs = {k: v for k, v in sorted(attributes.items()) if v is not None}
        self.nodes.append(gs.Node(op_type, name, attrs, tensors, outputs, domain or None))
        return tuple(outputs)

    def tensors_of(self, inputs: Sequence[Any]) -> list[gs.Tensor]:
        """The inputs of a node as tensors, without those that are left out at the end."""
        present = list(inputs)
        while present and isinstance(present[-1], str) and not present[-1]:
            present.pop()
        values = [i for i in present if isinstance(i, _VALUES)]
        # Types are looked up for numbers alone: it costs more than the rest.
        typed = FLOAT if len(values) == len(present) else next((d for v in values if (d := self.dtype(v))), FLOAT)
        return [self.tensor(i, typed) for i in present]

    def tensor(self, value: Any, dtype: int = FLOAT) -> gs.Tensor:
        """A tensor as it is, the tensor of a name, or the constant of an array or number (of `dtype`)."""
        if isinstance(value, gs.Tensor):
            return value
        if isinstance(value, str):
            return self.value(value) if value else gs.Variable.empty()
        return self.const(value) if isinstance(value, np.ndarray) else self.scalar(value, dtype=dtype)

    def value(self, name: str) -> gs.Tensor:
        """The tensor of a value that enters."""
        raise NotImplementedError

    def dtype(self, value: Value) -> int:
        """The ONNX element type of a tensor or of a value that enters; 0 when it is not known."""
        tensor = self.value(value) if isinstance(value, str) and value else value
        return 0 if isinstance(tensor, str) or tensor.dtype is None else onnx_dtype(tensor.dtype)

    def const(self, array: Array, what: str = "const") -> gs.Tensor:
        """A constant."""
        # As a finished message: graph-surgeon writes strings and packed 4-bit integers of an array wrongly.
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))
        tensor.name = self.unique_name(what)
        return gs.Constant(tensor.name, LazyValues(tensor))

    def ints(self, *values: int) -> gs.Tensor:
        """A 1-D int64 constant."""
        return self.const(np.asarray(values, np.int64))

    def scalar(self, value: float, like: Value = "", dtype: int = 0) -> gs.Tensor:
        """A 0-D constant of the element type of `like`, or of the ONNX element type `dtype`; FP32 when unknown."""
        number = dtype or (self.dtype(like) if not isinstance(like, str) or like else 0) or FLOAT
        return self.const(np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(number)))

    def cast(self, value: Value, dtype: int) -> Any:
        """Cast to an ONNX element type."""
        return self.op("Cast", value, to=int(dtype))

    def reduce(self, op_type: str, value: Value, axes: Sequence[int], *, keepdims: bool = True) -> Any:
        """A reduction; axes are an input since opset 18, for ReduceSum since 13."""
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.op(op_type, value, self.ints(*axes), keepdims=int(keepdims))
        return self.op(op_type, value, axes=list(axes), keepdims=int(keepdims))

    def unsqueeze(self, value: Value, *axes: int) -> Any:
        """Insert axes of size 1."""
        return self._with_axes("Unsqueeze", value, axes)

    def squeeze(self, value: Value, *axes: int) -> Any:
        """Remove axes of size 1."""
        return self._with_axes("Squeeze", value, axes)

    def _with_axes(self, op_type: str, value: Value, axes: Sequence[int]) -> Any:
        if self.opset >= 13:
            return self.op(op_type, value, self.ints(*axes))
        return self.op(op_type, value, axes=list(axes))

    def slice(self, value: Value, starts: Value, ends: Value, axes: Sequence[int], steps: Sequence[int] = ()) -> Any:
        """Slice with starts and ends as 1-D int64 values."""
        return self.op("Slice", value, starts, ends, self.ints(*axes), self.ints(*steps) if steps else "")

    def shape_of(self, value: Value) -> Any:
        """The shape of a value, 1-D int64; made once in a graph."""
        name = value if isinstance(value, str) else value.name
        for node in self.nodes:
            if node.op == "Shape" and node.inputs[0].name == name and not node.attrs:
                return node.outputs[0]
        return self.shape(value)

    def size(self, value: Value, axis: int) -> Any:
        """The size of one axis as a 1-D int64 value with one element."""
        return self.gather(self.shape_of(value), self.ints(axis), axis=0)

    def arange(self, count: Value) -> Any:
        """0 .. count - 1, int64; `count` is 0-D."""
        return self.range(self.scalar(0, dtype=INT64), count, self.scalar(1, dtype=INT64))

    def places(self, value: Value, axis: int) -> Any:
        """0 .. size - 1 of an axis, int64."""
        zero = self.scalar(0, dtype=INT64)
        return self.range(zero, self.squeeze(self.size(value, axis), 0), self.scalar(1, dtype=INT64))

    def resize(self, value: Value, roi: Value = "", scales: Value = "", sizes: Value = "", **attributes: Any) -> Any:
        """Resize; opsets 11 and 12 demand a region and scales, which are empty where they say nothing."""
        if self.opset < 13:
            nothing = np.zeros(0, np.float32)
            roi, scales = (self.const(nothing) if isinstance(v, str) and not v else v for v in (roi, scales))
        return self.op("Resize", value, roi, scales, sizes, **attributes)

    def concat(self, *values: Value, axis: int = 0) -> Any:
        """Concatenate; one value is returned as it is."""
        return self.op("Concat", *values, axis=axis) if len(values) > 1 else values[0]

    def reshape(self, value: Value, *shape: Any) -> Any:
        """Reshape to a shape that is one tensor, or to constant dims (-1 and 0 as in ONNX)."""
        computed = len(shape) == 1 and isinstance(shape[0], _VALUES)
        return self.op("Reshape", value, shape[0] if computed else self.ints(*shape))

    def transpose(self, value: Value, *perm: int) -> Any:
        """Transpose."""
        return self.op("Transpose", value, perm=list(perm))


_OF_FIRST_INPUT = frozenset({
    "Abs", "Add", "Ceil", "Clip", "Concat", "Div", "Erf", "Exp", "Expand", "Floor", "Gather", "GatherElements",
    "Identity", "Log", "MatMul", "Max", "Min", "Mod", "Mul", "Neg", "Pad", "Pow", "Range", "Reciprocal", "Relu",
    "Reshape", "Round", "Sigmoid", "Slice", "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Tanh",
    "Transpose", "Unsqueeze",
})  # fmt: skip
_FIXED = {"Shape": INT64, "Size": INT64, "ArgMax": INT64, "NonZero": INT64} | dict.fromkeys(
    ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Not"), BOOL
)


def output_dtype(op_type: str, inputs: Sequence[gs.Tensor], attributes: Mapping[str, Any]) -> Any:
    """The element type that a node of the usual operators gives, as graph-surgeon writes it; None when unknown."""
    if op_type == "Cast":
        return numpy_dtype(int(attributes["to"]))
    if op_type in _FIXED:
        return numpy_dtype(_FIXED[op_type])
    source = 1 if op_type == "Where" else 0
    if len(inputs) > source and (op_type in _OF_FIRST_INPUT or op_type == "Where" or op_type.startswith("Reduce")):
        return inputs[source].dtype
    return None


@lru_cache(maxsize=64)
def numpy_dtype(dtype: int) -> Any:
    """An ONNX element type as graph-surgeon writes it: a NumPy type where there is one. None for unknown (0)."""
    return get_numpy_type(dtype) or dtype or None


@lru_cache(maxsize=64)
def onnx_dtype(dtype: Any) -> int:
    """A graph-surgeon tensor's element type as ONNX's number."""
    return dtype if isinstance(dtype, int) else int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype)))
