"""An index over an ONNX graph for rules to read: who makes a value, who uses it, its constant, dtype and dims.

Rules only read. `splice.py` is the one module that changes an index and its graph. Every look-up is O(1) in the
number of nodes, so that matching is linear in the size of the model.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.provenance import Origin, origin_of

if TYPE_CHECKING:
    from trtconv.core.targets import Target
    from trtconv.plugins.description import PluginDescription

Dims = tuple["int | str | None", ...]
Array = np.ndarray[Any, np.dtype[Any]]
LARGE = 1 << 16
# How far a look-up follows a chain: a limit, so that a chain of 20,000 Identity nodes does not cost its square.
CHAIN = 16
DEFAULT_DOMAINS = ("", "ai.onnx")


POOLED_BYTES = 256
ContentKey = tuple[int, tuple[int, ...], bytes]


@dataclass(frozen=True)
class ValueType:
    """What is known of a value: ONNX element type (0 unknown) and dims (None when even the rank is unknown)."""

    dtype: int = 0
    dims: Dims | None = None


class Node:
    """A node with its lists as Python lists. `bodies` are the graphs of If, Loop and Scan.

    `op` is the op type, `domain` is empty for the default one, `key` is `Op`, or `domain::Op` outside the default
    domain: what `Rule.ops` names. They are read once, since rules ask for them all the time.
    """

    __slots__ = ("_attrs", "bodies", "domain", "fresh", "implicit", "inputs", "key", "op", "order", "outputs", "proto")

    def __init__(self, proto: onnx.NodeProto, order: float) -> None:
        self.proto = proto
        self.op: str = proto.op_type
        self.domain: str = "" if proto.domain in DEFAULT_DOMAINS else proto.domain
        self.key = f"{self.domain}::{self.op}" if self.domain else self.op
        self.order = order
        self.inputs: list[str] = list(proto.input)
        self.outputs: list[str] = list(proto.output)
        self.bodies: tuple[Graph, ...] = ()
        # Made in this round: nothing is inferred of its outputs before the next one.
        self.fresh = False
        self.implicit: frozenset[str] = frozenset()
        self._attrs: dict[str, Any] | None = None

    @property
    def keys(self) -> tuple[str, ...]:
        """What rules may name the node by: its key, and `*::Op` outside the default domain."""
        return (self.key, f"*::{self.op}") if self.domain else (self.key,)

    @property
    def name(self) -> str:
        """The node's name, or its first output when it has none."""
        return str(self.proto.name) or next((o for o in self.outputs if o), self.op)

    @property
    def output(self) -> str:
        """The first output."""
        return self.outputs[0]

    @property
    def origin(self) -> Origin:
        """Module path and source line of the PyTorch op."""
        return origin_of(self.proto)

    def attr(self, name: str, default: Any = None) -> Any:
        """An attribute as a Python value (strings decoded), or `default`."""
        if self._attrs is None:
            self._attrs = {a.name: a for a in self.proto.attribute}
        attribute = self._attrs.get(name)
        if attribute is None:
            return default
        value = helper.get_attribute_value(attribute)
        return value.decode() if isinstance(value, bytes) else value

    def attributes(self, *without: str) -> dict[str, Any]:
        """All attributes as Python values, but for those `without`."""
        return {a.name: self.attr(a.name) for a in self.proto.attribute if a.name not in without}

    def input(self, index: int) -> str:
        """The name of an input, empty when it is left out."""
        return self.inputs[index] if index < len(self.inputs) else ""


class Graph:
    """One scope: the main graph, or the body of If, Loop or Scan (then `parent` is the scope around it)."""

    def __init__(
        self,
        proto: onnx.GraphProto,
        types: Mapping[str, ValueType],
        *,
        opset: int,
        target: Target,
        parent: Graph | None = None,
        scope: str = "",
    ) -> None:
        self.proto, self.types, self.opset, self.target = proto, types, opset, target
        self.parent, self.scope = parent, scope
        self.nodes: dict[int, Node] = {}
        self.by_key: dict[str, dict[int, Node]] = {}
        self.with_bodies: dict[int, Node] = {}
        self.makers: dict[str, Node] = {}
        self.users: dict[str, dict[int, Node]] = {}
        self.initializers: dict[str, onnx.TensorProto] = {t.name: t for t in proto.initializer}
        self.inputs: tuple[str, ...] = tuple(v.name for v in proto.input)
        self.outputs: tuple[str, ...] = tuple(v.name for v in proto.output)
        # ONNX: an initializer with the name of an input is a default that the caller may override, and no constant.
        self.defaults = frozenset(self.initializers).intersection(self.inputs)
        # The recorded smallest and largest size of named dims; main graph only, read through dim_range.
        self.ranges: Mapping[str, tuple[int, int]] = {}
        # Function bodies of plugins that the model carries, and descriptions with which rules made plugin nodes.
        self.functions: tuple[onnx.FunctionProto, ...] = parent.functions if parent is not None else ()
        self.plugins: dict[str, PluginDescription] = parent.plugins if parent is not None else {}
        self.names: set[str] = parent.names if parent is not None else set()
        self.names.update(self.initializers, self.inputs)
        self.pool: dict[ContentKey, str] = {}
        for tensor in proto.initializer:
            if tensor.name not in self.inputs:
                self.pool_constant(tensor)
        self._constants: dict[str, Array | None] = {}
        for order, node in enumerate(proto.node):
            self.add(Node(node, float(order)))

    def pool_constant(self, tensor: onnx.TensorProto) -> None:
        """Remember a small constant by its content."""
        if 0 < len(tensor.raw_data) <= POOLED_BYTES:
            self.pool.setdefault(content_key(tensor), tensor.name)

    def add(self, node: Node) -> None:
        """Put a node into the index."""
        bodies = list(bodies_of(node.proto)) if node.proto.attribute else []
        if bodies:
            self.with_bodies[id(node)] = node
            where = f"{self.scope}/{node.name}" if self.scope else node.name
            node.bodies = tuple(
                Graph(b, self.body_types(b), opset=self.opset, target=self.target, parent=self, scope=where)
                for b in bodies
            )
            node.implicit = frozenset(n for b in node.bodies for n in b.captured())
        self.nodes[id(node)] = node
        for key in node.keys:
            self.by_key.setdefault(key, {})[id(node)] = node
        for name in node.outputs:
            if name:
                self.makers[name] = node
                self.names.add(name)
        for name in (*node.inputs, *node.implicit):
            if name:
                self.users.setdefault(name, {})[id(node)] = node

    def body_types(self, body: onnx.GraphProto) -> Mapping[str, ValueType]:
        """What is known of the values in a body: what its own value infos say."""
        return {v.name: type_of(v.type) for v in (*body.value_info, *body.input, *body.output)}

    def captured(self) -> set[str]:
        """Names that this scope takes from the ones around it."""
        own = set(self.makers) | set(self.initializers) | set(self.inputs)
        return (set(self.users) | set(self.outputs)) - own

    def scopes(self) -> Iterator[Graph]:
        """This scope and all inside it, outermost first."""
        yield self
        for node in sorted(self.with_bodies.values(), key=lambda n: n.order):
            for body in node.bodies:
                yield from body.scopes()

    def find(self, *keys: str) -> list[Node]:
        """The nodes with these op types, in order of the graph."""
        matching = [n for key in keys for n in self.by_key.get(key, {}).values()]
        return sorted(matching, key=lambda n: n.order) if len(keys) > 1 else matching

    def maker(self, name: str, *keys: str) -> Node | None:
        """The node of this scope that makes a value; with `keys`, only when it is one of these op types."""
        node = self.makers.get(name)
        return node if node is not None and (not keys or node.key in keys) else None

    def uses(self, name: str) -> list[Node]:
        """The nodes of this scope that use a value, bodies inside them included."""
        return list(self.users.get(name, {}).values())

    def used_once(self, name: str) -> bool:
        """True when exactly one node uses the value and it is not an output of the graph."""
        return len(self.users.get(name, ())) == 1 and name not in self.outputs

    def type(self, name: str) -> ValueType:
        """What is known of a value's type, looked up outwards."""
        # Not `get`: a mapping that makes its values when asked raises and catches an error for each name it lacks.
        if name in self.types:
            return self.types[name]
        if name in self.initializers:
            tensor = self.initializers[name]
            return ValueType(tensor.data_type, tuple(tensor.dims))
        if name in self.makers or name in self.inputs or self.parent is None:
            return ValueType()
        return self.parent.type(name)

    def dims(self, name: str) -> Dims | None:
        """The dims: integers, names, or None each; None when the rank is unknown."""
        return self.type(name).dims

    def dim_range(self, dim: int | str | None) -> tuple[int, int] | None:
        """The smallest and largest value of a dim; None for one without a name or a recorded range."""
        if isinstance(dim, int):
            return dim, dim
        graph = self
        while graph.parent is not None:
            graph = graph.parent
        return graph.ranges.get(dim) if dim else None

    def rank(self, name: str) -> int | None:
        """The rank, or None."""
        dims = self.dims(name)
        return None if dims is None else len(dims)

    def dtype(self, name: str) -> int:
        """The ONNX element type, 0 when unknown."""
        return self.type(name).dtype

    def constant_tensor(self, name: str) -> onnx.TensorProto | None:
        """The tensor of an initializer or Constant node, here or in a scope around; seen through Identity.

        None for an initializer that is an input as well: its value is the caller's.
        """
        graph: Graph | None = self
        for _ in range(CHAIN):
            if graph is None:
                return None
            if name in graph.initializers:
                return None if name in graph.defaults else graph.initializers[name]
            node = graph.makers.get(name)
            if node is not None and node.key == "Identity":
                name = node.inputs[0]
            elif node is not None:
                return constant_of(node.proto) if node.key == "Constant" else None
            else:
                graph = None if name in graph.inputs else graph.parent
        return None

    def is_constant(self, name: str) -> bool:
        """True when the value is fixed in the file."""
        return self.constant_tensor(name) is not None

    def constant(self, name: str, limit: int = LARGE) -> Array | None:
        """The values of a constant with at most `limit` elements; None for others and for weights on disk."""
        if not name:
            return None
        if name not in self._constants:
            tensor = self.constant_tensor(name)
            on_disk = tensor is not None and tensor.data_location == onnx.TensorProto.EXTERNAL
            if tensor is None or on_disk or int(np.prod(tensor.dims)) > limit:
                return None
            self._constants[name] = numpy_helper.to_array(tensor)
        return self._constants[name]

    def scalar(self, name: str) -> float | None:
        """The value of a constant with one element."""
        array = self.constant(name)
        return float(array.reshape(-1)[0]) if array is not None and array.size == 1 else None

    def ints(self, name: str) -> tuple[int, ...] | None:
        """The values of an integer constant."""
        array = self.constant(name)
        return None if array is None or array.dtype.kind not in "iu" else tuple(int(v) for v in array.reshape(-1))

    def behind(self, name: str, *keys: str) -> tuple[str, tuple[Node, ...]]:
        """The value behind a chain of unary nodes of these op types (default Identity), and the chain's nodes."""
        passed: list[Node] = []
        while len(passed) < CHAIN and (node := self.maker(name, *(keys or ("Identity",)))) is not None:
            passed.append(node)
            name = node.inputs[0]
        return name, tuple(reversed(passed))

    def operand(self, node: Node) -> tuple[str, Array] | None:
        """Of a binary node with one small constant operand, in either order: the other operand, the constant."""
        for value, other in ((0, 1), (1, 0)):
            array = self.constant(node.input(other))
            if array is not None and not self.is_constant(node.input(value)):
                return node.inputs[value], array
        return None

    def reduced_axes(self, node: Node) -> tuple[int, ...] | None:
        """The axes of a Reduce node, as attribute or as constant input, not negative; None when they are unknown."""
        rank = self.rank(node.inputs[0])
        axes = node.attr("axes") if node.input(1) == "" else self.ints(node.inputs[1])
        if axes is None and node.input(1):
            return None
        if not axes:
            return () if node.attr("noop_with_empty_axes", 0) or rank is None else tuple(range(rank))
        if rank is None:
            return tuple(axes) if min(axes) >= 0 else None
        return tuple(sorted(a % rank for a in axes))


def constant_of(node: onnx.NodeProto) -> onnx.TensorProto | None:
    """The tensor of a Constant, whichever attribute holds it; None for texts and sparse tensors."""
    for attribute in node.attribute:
        if attribute.name == "value":
            tensor: onnx.TensorProto = attribute.t
            return tensor
        if attribute.name in ("value_float", "value_floats"):
            return numpy_helper.from_array(np.asarray(helper.get_attribute_value(attribute), np.float32))
        if attribute.name in ("value_int", "value_ints"):
            return numpy_helper.from_array(np.asarray(helper.get_attribute_value(attribute), np.int64))
    return None


def content_key(tensor: onnx.TensorProto) -> ContentKey:
    """Type, dims and bytes of a constant."""
    return tensor.data_type, tuple(tensor.dims), bytes(tensor.raw_data)


def type_of(proto: onnx.TypeProto) -> ValueType:
    """The facts in an ONNX type; nothing for sequences and optionals.

    Inference gives negative sizes in a branch that is not for this rank; they are unknown.
    """
    if not proto.HasField("tensor_type"):
        return ValueType()
    tensor = proto.tensor_type
    if not tensor.HasField("shape"):
        return ValueType(tensor.elem_type)
    return ValueType(tensor.elem_type, tuple(_dim(d) for d in tensor.shape.dim))


def _dim(dim: onnx.TensorShapeProto.Dimension) -> int | str | None:
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    return str(dim.dim_param) or None
