"""What a fault is: one node of a graph in place of another, with weights of its own where the fault lies in them."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass(frozen=True)
class Edit:
    """A node's replacement, and the constants that it reads beside those of the graph."""

    node: onnx.NodeProto
    constants: dict[str, Array] = field(default_factory=dict)


@dataclass(frozen=True)
class Fault:
    """One fault at the node `index` of the main graph. `edit` is made when the fault is tried: weights may be large."""

    kind: str
    index: int
    detail: str
    edit: Callable[[], Edit]


class FaultGraph:
    """A model with what the injectors ask of it: constants by name, the node at hand, random numbers of its own.

    `weights` are the initializers of the graphs that are run: stand-ins where there are some, else the model's own.
    """

    def __init__(
        self, model: onnx.ModelProto, seed: int = 0, stand_ins: Mapping[str, onnx.TensorProto] | None = None
    ) -> None:
        from onnx import numpy_helper

        self.model, self.seed = model, seed
        self.weights = [(stand_ins or {}).get(t.name, t) for t in model.graph.initializer]
        self.nodes = list(model.graph.node)
        self._tensors = {t.name: t for t in model.graph.initializer}
        fed = {v.name for v in model.graph.input}
        self._tensors = {n: t for n, t in self._tensors.items() if n not in fed}
        for node in self.nodes:
            if node.op_type == "Constant" and not node.domain:
                tensor = next((a.t for a in node.attribute if a.name == "value"), None)
                if tensor is not None:
                    self._tensors[node.output[0]] = tensor
        self._read = numpy_helper.to_array

    def unchanged(self) -> onnx.ModelProto:
        """A copy of the model, with the stand-ins for its weights."""
        source = self.model
        copied = type(source)(
            ir_version=source.ir_version, opset_import=source.opset_import, functions=source.functions
        )
        graph, main = copied.graph, source.graph
        graph.name = main.name
        graph.node.extend(main.node)
        graph.initializer.extend(self.weights)
        graph.sparse_initializer.extend(main.sparse_initializer)
        graph.input.extend(main.input)
        graph.output.extend(main.output)
        graph.value_info.extend(main.value_info)
        return copied

    def constant(self, name: str) -> Array | None:
        """The value of an initializer or a Constant node; None for everything else."""
        tensor = self._tensors.get(name)
        return None if tensor is None else self._read(tensor)

    def constant_shape(self, name: str) -> tuple[int, ...] | None:
        """The shape of a constant, without reading it."""
        tensor = self._tensors.get(name)
        return None if tensor is None else tuple(tensor.dims)

    def is_float(self, name: str) -> bool:
        """True for a constant of FP32 or FP64."""
        tensor = self._tensors.get(name)
        return tensor is not None and tensor.data_type in (1, 11)

    def random(self, kind: str, index: int) -> np.random.Generator:
        """Numbers that depend on the seed, the kind of fault and the node alone."""
        import numpy as np

        return np.random.default_rng([self.seed, zlib.crc32(kind.encode()), index])


Injector = Callable[[FaultGraph, int], Iterator[Fault]]


def copy_of(node: onnx.NodeProto) -> onnx.NodeProto:
    """The node again, to be changed."""
    import onnx

    copied = onnx.NodeProto()
    copied.CopyFrom(node)
    return copied


def attribute(node: onnx.NodeProto, name: str, default: Any = None) -> Any:
    """An attribute's value as Python data; bytes are decoded."""
    import onnx

    for entry in node.attribute:
        if entry.name == name:
            value = onnx.helper.get_attribute_value(entry)
            return value.decode() if isinstance(value, bytes) else value
    return default


def with_attribute(node: onnx.NodeProto, **values: Any) -> Edit:
    """The node with other attributes; None removes one."""
    import onnx

    copied = copy_of(node)
    rest = [a for a in copied.attribute if a.name not in values]
    del copied.attribute[:]
    copied.attribute.extend(rest)
    copied.attribute.extend(onnx.helper.make_attribute(n, v) for n, v in values.items() if v is not None)
    return Edit(copied)


def with_input(node: onnx.NodeProto, position: int, value: Array) -> Edit:
    """The node with another constant at one of its inputs; other readers of the old one keep it."""
    copied = copy_of(node)
    name = f"{node.output[0]}/fault/{position}"
    copied.input[position] = name
    return Edit(copied, {name: value})
