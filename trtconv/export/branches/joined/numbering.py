"""Numbers for values: two values of one number are computed alike, from the same inputs and weights."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import bodies_of
from trtconv.core.model.drawing import DRAWING
from trtconv.core.model.provenance import BRANCH_SIZES_KEY

if TYPE_CHECKING:
    import onnx

# Two nodes that draw are never one.
ALONE = {*DRAWING, "Dropout"}
# Weights of so many elements are compared by what they hold, larger ones by their names.
MOST_COMPARED = 64


def is_joined(node: onnx.NodeProto) -> bool:
    """True for an If that a join wrote."""
    return node.op_type == "If" and any(p.key == BRANCH_SIZES_KEY for p in node.metadata_props)


def record_of(node: onnx.NodeProto) -> onnx.StringStringEntryProto:
    """The record of sizes of an If that a join wrote."""
    return next(p for p in node.metadata_props if p.key == BRANCH_SIZES_KEY)


def joined_outputs(node: onnx.NodeProto, index: int) -> tuple[str, ...]:
    """What the two branches, then and else, of an If give for one of its outputs."""
    branches = {a.name: a.g for a in node.attribute}
    return tuple(branches[f"{side}_branch"].output[index].name for side in ("then", "else"))


class Numbering:
    """The numbers of all values of several graphs that share inputs and weights by name."""

    def __init__(self, weights: Iterable[onnx.TensorProto]) -> None:
        import onnx

        self._numbers: dict[Hashable, int] = {}
        self._by_name: dict[str, int] = {}
        for tensor in weights:
            size = 1
            for dim in tensor.dims:
                size *= dim
            if size <= MOST_COMPARED and tensor.data_type != onnx.TensorProto.STRING:
                data = onnx.numpy_helper.to_array(tensor).tobytes()
                self._by_name[tensor.name] = self._number((tensor.data_type, tuple(tensor.dims), data))

    def of(self, name: str) -> int:
        """The number of a value; one that no node made is an input or a weight."""
        if name not in self._by_name:
            self._by_name[name] = self._number(("outside", name))
        return self._by_name[name]

    def add(self, nodes: Iterable[onnx.NodeProto]) -> None:
        """Number the outputs of nodes that are in order; those in the branches of joined Ifs too."""
        for node in nodes:
            if is_joined(node):
                for body in bodies_of(node):
                    self.add(body.node)
            for index, name in enumerate(node.output):
                if name:
                    self._by_name[name] = self._number_of_output(node, index)

    def _number_of_output(self, node: onnx.NodeProto, index: int) -> int:
        if node.op_type == "Identity" and not node.domain:
            return self.of(node.input[0])
        if is_joined(node):
            numbers = [self.of(name) for name in joined_outputs(node, index)]
            return numbers[0] if numbers[0] == numbers[1] else self._number(("if", self.of(node.input[0]), *numbers))
        if node.op_type in ALONE or any(True for _ in bodies_of(node)):
            return self._number(("alone", node.output[0], index))
        return self._number((form_of(node), tuple(self.of(n) for n in node.input), index))

    def _number(self, key: Hashable) -> int:
        return self._numbers.setdefault(key, len(self._numbers))


def form_of(node: onnx.NodeProto) -> Hashable:
    """All that two nodes have to share to be one operation on their inputs."""
    attributes = sorted((a.name, _without_doc(a).SerializeToString(deterministic=True)) for a in node.attribute)
    return node.domain, node.op_type, node.overload, len(node.output), tuple(attributes)


def _without_doc(attribute: onnx.AttributeProto) -> onnx.AttributeProto:
    if not attribute.doc_string:
        return attribute
    plain = type(attribute)()
    plain.CopyFrom(attribute)
    plain.ClearField("doc_string")
    return plain
