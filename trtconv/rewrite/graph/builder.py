"""Making the nodes of a replacement. A rule gets a builder, calls it for each node, and returns value names.

Forms that differ by opset (axes as attribute or as input) are hidden here, so that a rule is written once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.rewrite.graph.index import Array, Graph, content_key

if TYPE_CHECKING:
    from trtconv.plugins.description import PluginDescription

INT64 = onnx.TensorProto.INT64
FLOAT = onnx.TensorProto.FLOAT
BOOL = onnx.TensorProto.BOOL


class Builder:
    """Collects new nodes and constants; names start with the replaced value's name and the rule's."""

    def __init__(self, graph: Graph, stem: str, opset: int | None = None) -> None:
        self.graph, self.stem = graph, stem
        self.opset = opset or graph.opset
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self._by_content: dict[tuple[Any, ...], str] = {}
        self._taken: set[str] = set()

    def _name(self, what: str) -> str:
        base = name = f"{self.stem}/{what}"
        count = 1
        while name in self.graph.names or name in self._taken:
            name, count = f"{base}_{count}", count + 1
        self._taken.add(name)
        return name

    def op(self, op_type: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        """Add a node with one output and return the output's name. An empty input is left out."""
        return self.ops(op_type, 1, *inputs, domain=domain, **attributes)[0]

    def ops(self, op_type: str, count: int, *inputs: str, domain: str = "", **attributes: Any) -> tuple[str, ...]:
        """Add a node with `count` outputs and return their names."""
        name = self._name(op_type)
        outputs = [name] if count == 1 else [f"{name}:{i}" for i in range(count)]
        kept = list(inputs)
        while kept and not kept[-1]:
            kept.pop()
        given = {k: v for k, v in attributes.items() if v is not None}
        self.nodes.append(helper.make_node(op_type, kept, outputs, name=name, domain=domain or None, **given))
        return tuple(outputs)

    def plugin(self, plugin: str | PluginDescription, *inputs: str, **attributes: Any) -> str:
        """Add a plugin's node, made from its description, and return its first output.

        `plugin` is the op type of one of trtconv's plugins, or the description of one of the user's own.
        """
        from trtconv.plugins.described.registry import find_plugin
        from trtconv.plugins.onnx_form import make_node

        described = find_plugin(plugin) if isinstance(plugin, str) else plugin
        if not isinstance(plugin, str):
            self.graph.plugins[plugin.op_type] = plugin
        name = self._name(described.op_type)
        outputs = [name, *(f"{name}:{i}" for i in range(1, len(described.outputs)))]
        self.nodes.append(make_node(described, inputs, outputs, name, **attributes))
        return name

    def const(self, array: Array, what: str = "const") -> str:
        """Add a constant and return its name; an equal small one that the graph has already is used again."""
        tensor = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape))
        key = content_key(tensor)
        found = self._by_content.get(key) or self.graph.pool.get(key)
        if found is None:
            found = tensor.name = self._name(what)
            self.constants.append(tensor)
            self._by_content[key] = found
        return found

    def ints(self, *values: int) -> str:
        """A 1-D int64 constant."""
        return self.const(np.asarray(values, np.int64))

    def scalar(self, value: float, like: str = "", dtype: int = 0) -> str:
        """A 0-D constant of the dtype of value `like`, or of the ONNX element type `dtype`."""
        number = dtype or self.graph.dtype(like) or FLOAT
        return self.const(np.asarray(value).astype(helper.tensor_dtype_to_np_dtype(number)))

    def like(self, array_value: float, value: str, fallback: int = FLOAT) -> str:
        """A 0-D constant of the element type of `value`, which may be one that this builder has made."""
        return self.scalar(array_value, dtype=self.graph.dtype(value) or fallback)

    def cast(self, value: str, dtype: int) -> str:
        """Cast to an ONNX element type."""
        return self.op("Cast", value, to=int(dtype))

    def reduce(self, op_type: str, value: str, axes: Sequence[int], *, keepdims: bool = True) -> str:
        """A reduction; axes are an input since opset 18, for ReduceSum since 13."""
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.op(op_type, value, self.ints(*axes), keepdims=int(keepdims))
        return self.op(op_type, value, axes=list(axes), keepdims=int(keepdims))

    def unsqueeze(self, value: str, *axes: int) -> str:
        """Insert axes of size 1."""
        return self._axes_op("Unsqueeze", value, axes)

    def squeeze(self, value: str, *axes: int) -> str:
        """Remove axes of size 1."""
        return self._axes_op("Squeeze", value, axes)

    def _axes_op(self, op_type: str, value: str, axes: Sequence[int]) -> str:
        if self.opset >= 13:
            return self.op(op_type, value, self.ints(*axes))
        return self.op(op_type, value, axes=list(axes))

    def slice(self, value: str, starts: str, ends: str, axes: Sequence[int], steps: Sequence[int] = ()) -> str:
        """Slice with starts and ends as 1-D int64 values."""
        return self.op("Slice", value, starts, ends, self.ints(*axes), self.ints(*steps) if steps else "")

    def shape(self, value: str) -> str:
        """The whole shape, 1-D int64."""
        return self.op("Shape", value)

    def size(self, value: str, axis: int) -> str:
        """The size of one axis as a 1-D int64 value with one element."""
        return self.op("Gather", self.shape_once(value), self.ints(axis), axis=0)

    def shape_once(self, value: str) -> str:
        """The shape of a value, made once in this replacement."""
        for node in self.nodes:
            if node.op_type == "Shape" and node.input[0] == value and not node.attribute:
                return str(node.output[0])
        return self.shape(value)

    def concat(self, *values: str, axis: int = 0) -> str:
        """Concatenate."""
        return self.op("Concat", *values, axis=axis) if len(values) > 1 else values[0]

    def reshape(self, value: str, *dims: int) -> str:
        """Reshape to constant dims (-1 and 0 as in ONNX)."""
        return self.op("Reshape", value, self.ints(*dims))

    def transpose(self, value: str, *perm: int) -> str:
        """Transpose."""
        return self.op("Transpose", value, perm=list(perm))
