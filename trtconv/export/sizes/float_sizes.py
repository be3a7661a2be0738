"""What a file computes from sizes in floats and cuts: `Floor(Cast(Gather(Shape(x))) * 0.7)`, a Resize by a scale."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from trtconv.core.model.bodies import graphs_of, walk_nodes
from trtconv.core.shape_space.derived import names_of
from trtconv.proof.size_arithmetic import INTEGERS, dims_of_shape

if TYPE_CHECKING:
    import onnx

    from trtconv.core.tensors import TensorSpec

FLOATS = (1, 10, 11, 16)
# A last bit decides what these give.
CUTTING = frozenset(
    ("Floor", "Ceil", "Round", "Sign", "Mod", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal")
)

FLOATS_OF_SIZES = (
    "the module compares or rounds values with numbers that it computes from sizes, in FP64; the file has FP32, which "
    "may differ in the last bit: compute them in whole numbers (10 * length >= 3 * x.shape[1])"
)
# Bits of a number by which a size of another half of FP32's 24 bits is multiplied without rounding.
SHORT = 8
ARITHMETIC = ("Add", "Sub", "Mul", "Div")
WINDOWED = ("Conv", "ConvTranspose", "MaxPool", "AveragePool")
SHAPE_KEEPING = frozenset({
    "BatchNormalization", "Cast", "Clip", "Erf", "Gelu", "HardSwish", "Identity", "InstanceNormalization",
    "LayerNormalization", "LeakyRelu", "Relu", "Sigmoid", "Softmax", "Tanh",
})  # fmt: skip


class _ShapeValues:
    """What comes from shapes alone in a graph, whole or floating, taken in node by node.

    `dims` names the dims of `specs` that a value is computed from; None where it is computed from other shapes too.
    """

    def __init__(self, graph: onnx.GraphProto, specs: Sequence[TensorSpec] = ()) -> None:
        self.dims: dict[str, frozenset[str] | None] = {}
        self._axes: dict[str, tuple[frozenset[str], ...]] = {
            s.name: tuple(frozenset(names_of(d)) for d in s.dims) for s in specs
        }
        held = (t for g in graphs_of(graph) for t in g.initializer)
        self.constants: dict[str, onnx.TensorProto | None] = {t.name: t for t in held}
        self.whole: set[str] = set()
        self.floating: set[str] = set()

    def add(self, node: onnx.NodeProto) -> bool:
        """Take in what the node gives; true where that comes from shapes alone."""
        self._follow_axes(node)
        if node.op_type == "Constant":
            self.constants[node.output[0]] = next((a.t for a in node.attribute if a.name == "value"), None)
            return False
        if node.op_type in ("Shape", "Size"):
            self.whole.add(node.output[0])
            self.dims[node.output[0]] = self._dims_of(node)
            return True
        inputs = [i for i in node.input if i and i not in self.constants]
        if not inputs or not all(i in self.whole or i in self.floating for i in inputs):
            return False
        to_floats = self.reads_floats(node) or _cast_type(node) in FLOATS
        (self.floating if to_floats else self.whole).update(node.output)
        self.dims.update(dict.fromkeys(node.output, self.read_dims(node)))
        return True

    def read_dims(self, node: onnx.NodeProto) -> frozenset[str] | None:
        """The dims that a node's inputs are computed from; None where one is computed from other shapes."""
        read = [self.dims[i] for i in node.input if i in self.dims]
        return None if None in read else frozenset[str]().union(*(r for r in read if r is not None))

    def _dims_of(self, node: onnx.NodeProto) -> frozenset[str] | None:
        axes = self._axes.get(node.input[0])
        if axes is None:
            return None
        chosen = dims_of_shape(node, axes) if node.op_type == "Shape" else axes
        return frozenset[str]().union(*chosen)

    def _follow_axes(self, node: onnx.NodeProto) -> None:
        """Note what each axis of a node's result is computed from, as far as the operator alone tells."""
        axes = self._axes.get(node.input[0]) if node.input else None
        if axes is None:
            return
        if node.op_type in WINDOWED and len(axes) > 2:
            self._axes[node.output[0]] = (axes[0], frozenset(), *axes[2:])
        elif node.op_type in SHAPE_KEEPING:
            self._axes[node.output[0]] = axes
        elif node.op_type == "Transpose":
            order = next((list(a.ints) for a in node.attribute if a.name == "perm"), range(len(axes))[::-1])
            self._axes[node.output[0]] = tuple(axes[i] for i in order)

    def reads_floats(self, node: onnx.NodeProto) -> bool:
        """True where one of its inputs is a float from shapes."""
        return any(i in self.floating for i in node.input)


def _cast_type(node: onnx.NodeProto) -> int:
    return next((a.i for a in node.attribute if a.name == "to"), 0) if node.op_type == "Cast" else 0


def meets_floats_of_sizes(graph: onnx.GraphProto) -> bool:
    """True when values are compared or rounded with numbers computed from shapes that FP32 rounds more than once.

    A quotient of sizes is rounded once; a decimal was before it is multiplied.
    """
    values = _ShapeValues(graph)
    inexact: set[str] = set()
    touched: set[str] = set()
    for node in walk_nodes(graph.node):
        if values.add(node):
            scaled = node.op_type in ARITHMETIC and any(_is_decimal(values.constants.get(i)) for i in node.input)
            if node.output[0] in values.floating and (scaled or any(i in inexact for i in node.input)):
                inexact.update(node.output)
        elif any(i in inexact or i in touched for i in node.input):
            if node.op_type in CUTTING:
                return True
            if node.op_type in ARITHMETIC:
                touched.update(node.output)
    return False


def computes_sizes_in_floats(graph: onnx.GraphProto) -> bool:
    """True when numbers that come from shapes alone go through floats back into whole ones."""
    return next(rounding_nodes(graph), None) is not None


def rounding_nodes(graph: onnx.GraphProto) -> Iterator[onnx.NodeProto]:
    """The nodes by which numbers that come from shapes alone go through floats back into whole ones.

    A Resize by a scale that is a power of two rounds nothing.
    """
    yield from _rounding(graph, _ShapeValues(graph))


def rounding_dims(graph: onnx.GraphProto, specs: Sequence[TensorSpec]) -> frozenset[str] | None:
    """The dims that the numbers of `rounding_nodes` are computed from; None where that cannot be seen."""
    values, dims = _ShapeValues(graph, specs), frozenset[str]()
    for node in _rounding(graph, values):
        read = None if node.op_type == "Resize" else values.read_dims(node)
        if read is None:
            return None
        dims |= read
    return dims


def _rounding(graph: onnx.GraphProto, values: _ShapeValues) -> Iterator[onnx.NodeProto]:
    """`rounding_nodes`, each once `values` has taken in what comes before it."""
    for node in walk_nodes(graph.node):
        if node.op_type == "Resize":
            if _scaled(node, values.constants, values.floating):
                yield node
            continue
        cuts = _cast_type(node) in INTEGERS or node.op_type in CUTTING
        if values.add(node) and values.reads_floats(node) and cuts:
            yield node


def _scaled(node: onnx.NodeProto, constants: dict[str, onnx.TensorProto | None], floating: set[str]) -> bool:
    from onnx import numpy_helper

    scales = node.input[2] if len(node.input) > 2 else ""
    if scales in floating:
        return True
    tensor = constants.get(scales) if scales else None
    if tensor is None or not math.prod(tensor.dims):
        return False
    return any(math.frexp(float(v))[0] != 0.5 for v in numpy_helper.to_array(tensor).reshape(-1))


def _is_decimal(tensor: onnx.TensorProto | None) -> bool:
    """True for floats that are no multiple of a small power of two."""
    from onnx import numpy_helper

    if tensor is None or tensor.data_type not in FLOATS:
        return False
    return any(math.frexp(float(v))[0] * 2**SHORT % 1 for v in numpy_helper.to_array(tensor).reshape(-1))
