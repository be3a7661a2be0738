"""Constants in the types in which they are used: each converted once for each use that differs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import onnx

from trtconv.rewrite.graph.index import Graph, Node
from trtconv.rewrite.precision.half import FLOAT, HalfFormat, WeightCounts, to_half


@dataclass(frozen=True)
class Use:
    """How a value is wanted: ONNX element type, and whether values out of its range are brought into it."""

    type: int
    saturated: bool = False


@dataclass
class Constants:
    """The uses of every FP32 constant, by defining scope and name, and the names under which they are written."""

    uses: dict[tuple[int, str], dict[Use, None]] = field(default_factory=dict)
    written: dict[tuple[int, str], dict[Use, str]] = field(default_factory=dict)

    def add_use(self, location: tuple[int, str], use: Use) -> None:
        """Record a use."""
        self.uses.setdefault(location, {})[use] = None

    def name(self, location: tuple[int, str], use: Use, fresh: Callable[[str], str], suffix: str) -> str:
        """The name of a constant in one of its uses; FP32 keeps the name, or the only use does."""
        names = self.written.setdefault(location, {})
        if not names:
            uses = list(self.uses.get(location, {Use(FLOAT): None}))
            plain = Use(FLOAT) if Use(FLOAT) in uses else uses[0]
            for each in uses:
                names[each] = location[1] if each == plain else fresh(f"{location[1]}_{suffix}")
        # Reading the size or shape alone: any of them will do.
        return names.get(use, next(iter(names.values())))

    def variants(self, location: tuple[int, str]) -> Iterator[tuple[Use, str]]:
        """Each use with its name, once names were given."""
        yield from self.written.get(location, {}).items()


def defining_scope(graph: Graph, name: str) -> Graph | None:
    """The scope in which a name is an initializer or the output of a Constant node; None for other values."""
    scope: Graph | None = graph
    while scope is not None:
        if name in scope.initializers:
            # A default that the caller may override is a value like any other input.
            return None if name in scope.defaults else scope
        if name in scope.makers:
            return scope if scope.makers[name].key == "Constant" else None
        scope = None if name in scope.inputs else scope.parent
    return None


def constant_as(tensor: onnx.TensorProto, use: Use, name: str, to: HalfFormat) -> tuple[onnx.TensorProto, WeightCounts]:
    """The constant as it is used, and what happened to its values."""
    if use.type != FLOAT:
        return to_half(tensor, to, name)
    unchanged = onnx.TensorProto()
    unchanged.CopyFrom(tensor)
    unchanged.name = name
    return unchanged, WeightCounts()


def constant_node(node: Node, tensor: onnx.TensorProto, name: str) -> onnx.NodeProto:
    """A Constant node with the origin of another, for a tensor."""
    copy = onnx.NodeProto()
    copy.CopyFrom(node.proto)
    del copy.attribute[:], copy.output[:]
    copy.output.append(name)
    copy.attribute.append(onnx.helper.make_attribute("value", tensor))
    return copy
