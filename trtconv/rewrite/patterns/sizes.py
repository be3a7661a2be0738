"""What a computed size is: `3 * dim(x, 2) + 1`, read off the shape arithmetic that an exporter writes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trtconv.rewrite.graph.index import Graph, Node

DEPTH = 32
# Element types that hold sizes as they are: FP32, int32, int64 and FP64.
HOLDING_SIZES = (1, 6, 7, 11)


@dataclass(frozen=True)
class Size:
    """`mul * dim(value, axis) + add`; a constant has an empty value and is all in `add`."""

    value: str = ""
    axis: int = 0
    mul: int = 0
    add: int = 0

    @property
    def is_constant(self) -> bool:
        """True when no dim is in it."""
        return not self.value

    @property
    def is_dim(self) -> bool:
        """True when it is a dim, unchanged."""
        return bool(self.value) and self.mul == 1 and self.add == 0


def size_element(graph: Graph, name: str, index: int, depth: int = DEPTH) -> Size | None:
    """Element `index` of a 0-D or 1-D value in closed form, or None where it is something else."""
    fixed = graph.constant(name)
    if fixed is not None:
        flat = fixed.reshape(-1)
        whole = index < flat.size and float(flat[index]).is_integer()
        return Size(add=int(flat[index])) if whole else None
    node = graph.maker(name)
    if node is None or depth == 0:
        return None
    if node.key == "Shape":
        return _dim(graph, node, index)
    if node.key == "Cast" and node.attr("to") not in HOLDING_SIZES:
        return None
    if node.key in ("Identity", "Cast", "Unsqueeze", "Squeeze", "Floor", "Reshape"):
        flat_input = graph.rank(node.inputs[0])
        return size_element(graph, node.inputs[0], index, depth - 1) if flat_input in (0, 1) else None
    if node.key in ("Gather", "Slice", "Concat"):
        return _follow_shape(graph, node, index, depth - 1)
    if node.key in ("Mul", "Add", "Sub"):
        return _combined(graph, node, index, depth - 1)
    return None


def _dim(graph: Graph, node: Node, index: int) -> Size | None:
    dims = graph.dims(node.inputs[0])
    if dims is None:
        return None
    axes = list(range(len(dims)))[node.attr("start", 0) : node.attr("end", None)]
    if not 0 <= index < len(axes):
        return None
    return dim_size(graph, node.inputs[0], axes[index])


def dim_size(graph: Graph, value: str, axis: int) -> Size:
    """The dim of a value as a Size: a constant where inference knows it."""
    dims = graph.dims(value) or ()
    dim = dims[axis] if axis < len(dims) else None
    return Size(add=dim) if isinstance(dim, int) else Size(value, axis, 1, 0)


def same_dim(graph: Graph, one: Size, other: Size) -> bool:
    """True when both follow from the same dim: the same axis of the same value, or dims of the same name."""
    if one.is_constant or other.is_constant:
        return one.is_constant and other.is_constant
    names = [(graph.dims(s.value) or ())[s.axis : s.axis + 1] for s in (one, other)]
    named = names[0] == names[1] and names[0] != () and isinstance(names[0][0], str)
    return named or (one.value, one.axis) == (other.value, other.axis)


def _follow_shape(graph: Graph, node: Node, index: int, depth: int) -> Size | None:
    """Through ops that pick or join elements."""
    if node.key == "Gather":
        where = graph.ints(node.inputs[1])
        length = _length(graph, node.inputs[0])
        if where is None or length is None or node.attr("axis", 0) != 0 or index >= len(where):
            return None
        return size_element(graph, node.inputs[0], where[index] % length, depth)
    if node.key == "Slice":
        length, parts = _length(graph, node.inputs[0]), [graph.ints(i) if i else () for i in node.inputs[1:]]
        if length is None or any(p is None for p in parts) or len(node.inputs) < 3:
            return None
        starts, ends, _, steps = [*(p or () for p in parts), (), ()][:4]
        picked = list(range(length))[starts[0] : ends[0] : (steps or (1,))[0]]
        return size_element(graph, node.inputs[0], picked[index], depth) if index < len(picked) else None
    for part in node.inputs:
        length = _length(graph, part)
        if length is None:
            return None
        if index < length:
            return size_element(graph, part, index, depth)
        index -= length
    return None


def _length(graph: Graph, name: str) -> int | None:
    dims = graph.dims(name)
    if dims is None or len(dims) > 1:
        return None
    if not dims:
        return 1
    return dims[0] if isinstance(dims[0], int) else None


def _combined(graph: Graph, node: Node, index: int, depth: int) -> Size | None:
    lengths = [_length(graph, i) for i in node.inputs]
    if None in lengths:
        return None
    a, b = (
        size_element(graph, i, 0 if length == 1 else index, depth)
        for i, length in zip(node.inputs, lengths, strict=True)
    )
    if a is None or b is None or not (a.is_constant or b.is_constant):
        return None
    if node.key == "Mul":
        moving, factor = (b, a.add) if a.is_constant else (a, b.add)
        return replace(moving, mul=moving.mul * factor, add=moving.add * factor)
    if node.key == "Sub":
        return replace(a, add=a.add - b.add) if b.is_constant else replace(b, mul=-b.mul, add=a.add - b.add)
    return replace(b, add=a.add + b.add) if a.is_constant else replace(a, add=a.add + b.add)
