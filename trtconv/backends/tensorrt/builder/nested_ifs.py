"""Ifs inside Ifs, which TensorRT's builder ends on with an assertion of its own: named, with what decides them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.bodies import bodies_of, walk_nodes
from trtconv.core.model.file import tensor_spec
from trtconv.core.model.provenance import origin_of

if TYPE_CHECKING:
    import onnx

# Words of the assertion in the builder of TensorRT-RTX 1.7 (Myelin's scopes).
ASSERTION = "graphscope.cpp"
MOST_SHOWN = 3
BRANCH_HINT = (
    "a decision by sizes stands inside another: give ranges with --dynamic in which one of the two goes one way, or "
    "compute both ways and choose with torch.where"
)


@dataclass(frozen=True)
class NestedIf:
    """An If of the main graph that holds another one."""

    outer: str
    inner: str


def nested_ifs(model: onnx.ModelProto) -> tuple[NestedIf, ...]:
    """The Ifs of the main graph with an If inside."""
    nested = []
    for node in model.graph.node:
        inner = next((n for n in _inside(node) if n.op_type == "If"), None) if node.op_type == "If" else None
        if inner is not None:
            nested.append(NestedIf(_label(node), _label(inner)))
    return tuple(nested)


def nested_error(model: onnx.ModelProto, what: str, path: object) -> UnsupportedError | None:
    """The error for a model that `what` could not build for its nested Ifs; None where it has none."""
    nested = nested_ifs(model)
    if not nested:
        return None
    first = nested[0]
    hint = fixing_hint(model) or BRANCH_HINT
    return UnsupportedError(
        f"{what} does not take the If '{first.inner}' inside the If '{first.outer}' of {path}",
        hint=hint,
        details=[f"If '{n.inner}' inside If '{n.outer}'" for n in nested[1 : MOST_SHOWN + 1]],
        where=_first_line_inside(model),
    )


def _first_line_inside(model: onnx.ModelProto) -> str | None:
    """The line that the first node with one comes from, among those that an inner If chooses."""
    inner = (n for node in model.graph.node if node.op_type == "If" for n in _inside(node) if n.op_type == "If")
    sources = (origin_of(n).source for node in inner for n in _inside(node))
    return next((source for source in sources if source), None)


def fixing_hint(model: onnx.ModelProto) -> str:
    """What to add where an input of whole numbers decides an If, both branches of which have to build; else empty."""
    ifs = [n for n in model.graph.node if n.op_type == "If"]
    options = list(dict.fromkeys(o for n in ifs for o in _options(model, n.input[0])))
    if not options:
        return ""
    others = f" (or {', '.join(options[1:])})" if len(options) > 1 else ""
    return f"an input decides an If, and both branches are built: where it has one value, add {options[0]}{others}"


def _inside(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    for body in bodies_of(node):
        yield from walk_nodes(body.node)


def _label(node: onnx.NodeProto) -> str:
    return str(node.name or node.output[0])


def _options(model: onnx.ModelProto, name: str) -> Iterator[str]:
    """`--input` lines for the inputs of whole numbers that a condition compares with a constant."""
    makers = {o: n for n in model.graph.node for o in n.output if o}
    inputs = {v.name: v for v in model.graph.input}
    waiting, visited, numbers, deciding = [name], {name}, list[int](), list[str]()
    while waiting:
        value = waiting.pop()
        node = makers.get(value)
        if value in inputs:
            deciding.append(value)
        if node is None or node.op_type in ("Shape", "Size"):
            continue
        if node.op_type == "Equal":
            numbers += [n for i in node.input if (n := _number(model, makers, i)) is not None]
        fresh = [i for i in node.input if i and i not in visited]
        visited.update(fresh)
        waiting += fresh
    for name in dict.fromkeys(deciding):
        spec = tensor_spec(inputs[name])
        if spec.dtype.kind == "int" and not spec.names():
            dims = ",".join(map(str, spec.dims))
            yield from (f"--input '{name}:{spec.dtype.name}[{dims}]={n}:{n}'" for n in dict.fromkeys(numbers))


def _number(model: onnx.ModelProto, makers: dict[str, Any], name: str) -> int | None:
    from onnx import numpy_helper

    node = makers.get(name)
    tensor = next((t for t in model.graph.initializer if t.name == name), None)
    if node is not None and node.op_type == "Constant" and node.attribute and node.attribute[0].HasField("t"):
        tensor = node.attribute[0].t
    if tensor is None:
        return None
    values = numpy_helper.to_array(tensor)
    return int(values.reshape(-1)[0]) if values.size == 1 and values.dtype.kind in "iu" else None
