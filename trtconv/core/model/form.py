"""The door for foreign ONNX: what a file must keep so that no later step stumbles over it. No weights are read.

onnx.checker covers a part of this, reads external weights, and knows neither recursion of functions nor sizes. The form
is that of onnx.proto: which field of TensorProto holds an element type, which of AttributeProto belongs to a type.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.model.dangling import require_given_values
from trtconv.core.model.functions import require_finite_calls, require_fitting_calls, require_one_meaning

if TYPE_CHECKING:
    import onnx

MAX_DEPTH = 24
# As large as a version can be that ONNX takes for a question about an operator.
MOST_VERSION = (1 << 31) - 1
MAX_ELEMENTS = 1 << 48
# Element type -> bits of an element, the field of typed data, entries of that field per element.
_ELEMENTS: dict[int, tuple[int, str, float]] = {
    1: (32, "float_data", 1), 2: (8, "int32_data", 1), 3: (8, "int32_data", 1), 4: (16, "int32_data", 1),
    5: (16, "int32_data", 1), 6: (32, "int32_data", 1), 7: (64, "int64_data", 1), 8: (0, "string_data", 1),
    9: (8, "int32_data", 1), 10: (16, "int32_data", 1), 11: (64, "double_data", 1), 12: (32, "uint64_data", 1),
    13: (64, "uint64_data", 1), 14: (64, "float_data", 2), 15: (128, "double_data", 2), 16: (16, "int32_data", 1),
    17: (8, "int32_data", 1), 18: (8, "int32_data", 1), 19: (8, "int32_data", 1), 20: (8, "int32_data", 1),
    21: (4, "int32_data", 0.5), 22: (4, "int32_data", 0.5), 23: (4, "int32_data", 0.5), 24: (8, "int32_data", 1),
    25: (2, "int32_data", 0.25), 26: (2, "int32_data", 0.25), 27: (6, "int32_data", 1),
    28: (6, "int32_data", 1),
}  # fmt: skip
_TYPED = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
# AttributeProto.AttributeType -> the field that holds it.
_FIELDS = {1: "f", 2: "i", 3: "s", 4: "t", 5: "g", 6: "floats", 7: "ints", 8: "strings", 9: "tensors", 10: "graphs",
           11: "sparse_tensor", 12: "sparse_tensors", 13: "tp", 14: "type_protos"}  # fmt: skip
# The letters of an operand, at most as many as NumPy has axes, and one ellipsis.
_EINSUM_TERM = re.compile(r"[A-Za-z]{0,64}(\.\.\.[A-Za-z]{0,64})?")
_VALUES = frozenset(_FIELDS.values())


class _Schema(NamedTuple):
    """Of an operator: the attributes' types by name, and those that must be there."""

    types: dict[str, int]
    required: frozenset[str]


def require_form(model: onnx.ModelProto, path: Path) -> None:
    """Raise InvalidRequestError naming the node or tensor for which a model is not well-formed ONNX.

    Raises UnsupportedError for local functions whose operators mean something else in the opset of the model.
    """
    try:
        _Form(path, {o.domain: o.version for o in model.opset_import}).check(model)
    except UnicodeDecodeError as error:
        raise _malformed(path, f"a name or text in it is not UTF-8: {error.reason}") from error


def _malformed(path: Path, what: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"'{path}' is not a valid ONNX model: {what}", hint="export it again, or repair it with the tool that wrote it"
    )


class _Form:
    def __init__(self, path: Path, opsets: dict[str, int]) -> None:
        self._path, self._folder, self._opsets = path, os.path.realpath(path.parent), opsets
        self._schemas: dict[tuple[str, str], _Schema | None] = {}

    def check(self, model: onnx.ModelProto) -> None:
        self._text("the metadata", lambda: (t for p in model.metadata_props for t in (p.key, p.value)))
        self._text("the model", lambda: (model.producer_name, model.producer_version, model.domain, model.doc_string))
        self._opset_versions(model)
        self._graph(model.graph, 0)
        require_given_values(model, lambda what: _malformed(self._path, what))
        for function in model.functions:
            self._opset_versions(function)
            self._function(function)
        require_finite_calls(model, lambda what: _malformed(self._path, what))
        require_fitting_calls(model, lambda what: _malformed(self._path, what))
        require_one_meaning(model, self._in_two_opsets)

    def _opset_versions(self, proto: onnx.ModelProto | onnx.FunctionProto) -> None:
        for entry in proto.opset_import:
            if not 0 <= entry.version <= MOST_VERSION:
                raise self._fail(f"it imports version {entry.version} of '{entry.domain or 'ai.onnx'}'")

    def _function(self, function: onnx.FunctionProto) -> None:
        f = function
        self._text("a local function", lambda: (f.name, f.domain, *f.input, *f.output, *f.attribute))
        inner = _Form(self._path, {**self._opsets, **{o.domain: o.version for o in function.opset_import}})
        for node in function.node:
            inner._node(node, 0)

    def _in_two_opsets(self, what: str) -> UnsupportedError:
        return UnsupportedError(
            f"'{self._path}' cannot be read as one graph: {what}",
            hint="export it in one opset, or write its functions out in that of the model: "
            "onnx.inliner.inline_local_functions(model, convert_version=True)",
        )

    def _fail(self, what: str) -> InvalidRequestError:
        return _malformed(self._path, what)

    def _text(self, what: str, read: Callable[[], Iterable[Any]]) -> None:
        # Some protobuf readers give bytes for a string that is not UTF-8, others raise.
        try:
            spoilt = any(isinstance(text, bytes) for text in read())
        except UnicodeDecodeError:
            spoilt = True
        if spoilt:
            raise self._not_utf8(what)

    def _not_utf8(self, what: str) -> InvalidRequestError:
        return self._fail(f"{what} holds a text that is not UTF-8")

    def _graph(self, graph: onnx.GraphProto, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise self._fail(f"graphs are nested over {MAX_DEPTH} deep")
        self._text("a graph", lambda: (graph.name, graph.doc_string))
        defined: set[str] = set()
        for value in (*graph.input, *graph.output, *graph.value_info):
            self._value(value)
        self._once(defined, (v.name for v in graph.input), "input")
        names: set[str] = set()
        for tensor in graph.initializer:
            self._tensor(tensor, "initializer")
        self._once(names, (t.name for t in graph.initializer), "initializer")
        defined |= names
        for sparse in graph.sparse_initializer:
            self._tensor(sparse.values, "sparse initializer")
            self._tensor(sparse.indices, "sparse initializer")
        for index, node in enumerate(graph.node):
            self._node(node, depth, index)
            for output in node.output:
                if output in defined:
                    raise self._fail(f"the output of {_label(node, index)} '{output}' is defined twice")
                if output:
                    defined.add(output)

    def _once(self, defined: set[str], names: Iterator[str], what: str) -> None:
        for name in names:
            if name in defined:
                raise self._fail(f"the {what} '{name}' is defined twice")
            defined.add(name)

    def _value(self, value: onnx.ValueInfoProto) -> None:
        kind = value.type.tensor_type
        self._text("an input, output or value", lambda: (value.name, *(d.dim_param for d in kind.shape.dim)))
        if value.type.HasField("tensor_type") and kind.elem_type not in _ELEMENTS and kind.elem_type != 0:
            raise self._fail(f"'{value.name}' has the unknown element type {kind.elem_type}")

    def _node(self, node: onnx.NodeProto, depth: int, index: int = -1) -> None:
        # Called for every node at each load, so what only an error needs is made for an error.
        try:
            texts = (node.name, node.op_type, node.domain, node.overload, node.doc_string, *node.input, *node.output)
            spoilt = bytes in map(type, texts)
        except UnicodeDecodeError:
            spoilt = True
        if spoilt:
            raise self._not_utf8(f"node {index}" if index >= 0 else "a node of a local function")
        if not node.op_type:
            raise self._fail(f"{_label(node, index)} has no operator")
        schema = self._schema(node)
        attributes: set[str] = set()
        if node.attribute:
            label = _label(node, index)
            for attribute in node.attribute:
                self._attribute(attribute, label, schema, depth)
                name = attribute.name
                if name in attributes:
                    raise self._fail(f"the attribute of {label} '{name}' is defined twice")
                attributes.add(name)
        if schema is not None and not schema.required <= attributes:
            absent = min(schema.required - attributes)
            raise self._fail(f"{_label(node, index)} lacks its attribute '{absent}'")

    def _schema(self, node: onnx.NodeProto) -> _Schema | None:
        key = (node.op_type, node.domain)
        try:
            return self._schemas[key]
        except KeyError:
            self._schemas[key] = schema = self._read_schema(*key)
            return schema

    def _read_schema(self, op_type: str, domain: str) -> _Schema | None:
        import onnx.defs

        domain = "" if domain == "ai.onnx" else domain
        version = self._opsets.get(domain, self._opsets.get("ai.onnx", 1) if not domain else 1)
        try:
            schema = onnx.defs.get_schema(op_type, max(version, 1), domain)
        except onnx.defs.SchemaError:
            return None  # an operator of another domain, a local function, or a newer opset
        types = {name: a.type.value for name, a in schema.attributes.items()}
        return _Schema(types, frozenset(name for name, a in schema.attributes.items() if a.required))

    def _attribute(self, attribute: onnx.AttributeProto, label: str, schema: _Schema | None, depth: int) -> None:
        try:
            texts = (attribute.name, attribute.ref_attr_name, attribute.doc_string)
            spoilt = bytes in map(type, texts)
        except UnicodeDecodeError:
            spoilt = True
        if spoilt:
            raise self._not_utf8(label)
        if texts[1]:
            return
        what = f"the attribute '{texts[0]}' of {label}"
        own = _FIELDS.get(attribute.type)
        if own is None:
            raise self._fail(f"{what} has the unknown type {attribute.type}")
        for descriptor, _ in attribute.ListFields():
            name = descriptor.name
            if name != own and name in _VALUES:
                raise self._fail(f"{what} is of type '{own}' and holds '{name}'")
        if own in ("t", "g", "sparse_tensor", "tp") and not attribute.HasField(own):
            raise self._fail(f"{what} is empty")
        if schema is not None:
            schema_type = schema.types.get(texts[0], attribute.type)
            if schema_type != attribute.type:
                raise self._fail(
                    f"{what} is of type '{own}', the operator takes '{_FIELDS.get(schema_type, schema_type)}'"
                )
        if own == "s" and schema is not None:
            self._text(what, lambda: (attribute.s.decode(),))
        if own == "s" and attribute.name == "equation" and schema is not None:
            # onnx's shape inference takes practically forever for thousands of dots.
            terms = attribute.s.decode().replace(" ", "").replace("->", ",", 1).split(",")
            if not all(map(_EINSUM_TERM.fullmatch, terms)):
                raise self._fail(f"{what} is not an Einsum equation")
        if own in ("t", "tensors"):
            for tensor in (attribute.t,) if own == "t" else attribute.tensors:
                self._tensor(tensor, f"tensor in {what}")
        elif own in ("g", "graphs"):
            for body in (attribute.g,) if own == "g" else attribute.graphs:
                self._graph(body, depth + 1)

    def _tensor(self, tensor: onnx.TensorProto, what: str) -> None:
        self._text(f"an {what}", lambda: (tensor.name, *(t for e in tensor.external_data for t in (e.key, e.value))))
        label = f"the {what} '{tensor.name}'" if tensor.name else f"the {what}"
        if tensor.data_type not in _ELEMENTS:
            raise self._fail(f"{label} has the unknown element type {tensor.data_type}")
        dims = list(tensor.dims)
        if any(d < 0 for d in dims):
            raise self._fail(f"{label} has the negative dims {dims}")
        count = math.prod(dims)
        if count > MAX_ELEMENTS:
            raise self._fail(f"{label} has {count} elements, over 2^48")
        bits, field, entries = _ELEMENTS[tensor.data_type]
        if tensor.data_location == 1:
            self._external({e.key: e.value for e in tensor.external_data}, -(-count * bits // 8), label)
            return
        lengths = {name: len(getattr(tensor, name)) for name in _TYPED if name != field}
        if any(lengths.values()):
            raise self._fail(f"{label} holds data in a field of another element type")
        typed = len(getattr(tensor, field))
        if tensor.HasField("raw_data") and not typed:
            if field == "string_data":
                raise self._fail(f"{label} holds strings as raw data")
            present, needed, unit = len(tensor.raw_data), -(-count * bits // 8), "bytes"
        else:
            present, needed, unit = typed, math.ceil(count * entries), "entries"
        if present != needed:
            raise self._fail(f"{label} holds {present} {unit}, its dims {dims} need {needed}")

    def _external(self, entries: dict[str, str], needed: int, label: str) -> None:
        location = entries.get("location", "")
        parts = location.replace("\\", "/").split("/")
        resolved = os.path.realpath(os.path.join(self._folder, location)) if "\0" not in location else ""
        inside = resolved.startswith(os.path.join(self._folder, ""))
        if not location or ".." in parts or os.path.isabs(location) or not inside:
            raise self._fail(f"{label} has its data in '{location}', outside of the model's folder")
        for key in ("offset", "length"):
            text = entries.get(key, "0")
            if not (text.isascii() and text.isdigit()) or len(text) > 18:
                raise self._fail(f"{label} has the {key} '{text}' of its external data")
        length = int(entries.get("length", needed))
        if length != needed:
            raise self._fail(f"{label} has {length} bytes of external data, its dims need {needed}")
        # Missing or truncated weights are reported by whatever reads them.


def _label(node: onnx.NodeProto, index: int) -> str:
    name = f"node '{node.name}'" if node.name else f"node {index}" if index >= 0 else "a node"
    return f"{name} ({node.op_type})" if node.op_type else name
