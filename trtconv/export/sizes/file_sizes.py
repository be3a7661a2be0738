"""Sizes that a file computes in floats, evaluated at all joint sizes: in FP32, as the file does, and as Python does.

`int(h * w * 0.29)` in FP32 is another whole number than in Python at few of millions of pairs. The file's arithmetic on
shapes is small, and NumPy does it for all of them at once.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.export.sizes.intervals import INTEGERS
from trtconv.proof.joint_sizes import count_sizes, size_grids, sizes_where

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]
    # The elements of a vector, or the one of a scalar: each an array over the joint sizes.
    Elements = list[Array]

FLOATS = (1, 10, 11, 16)
ROUNDING = ("Floor", "Ceil", "Round")
MOST_ELEMENTS = 64
MOST_EVALUATED = 1 << 25
SECONDS = 2.0
MOST_FOUND = 4
PASSED_ON = ("Identity", "Squeeze", "Unsqueeze", "Reshape")


class _OtherError(Exception):
    """The value is no arithmetic on shapes and constants."""


def differing_sizes(
    graph: onnx.GraphProto, specs: Sequence[TensorSpec], space: ShapeSpace, seconds: float = SECONDS
) -> list[dict[str, int]]:
    """Joint sizes at which FP32 rounds a size to another whole number than FP64 does, by the dims it depends on."""
    arithmetic = _Arithmetic(graph, specs)
    deadline, differing = time.monotonic() + seconds, list[dict[str, int]]()
    for node in graph.node:
        if not _rounds(node):
            continue
        try:
            names = [n for n in space if n in arithmetic.dims(node.output[0])]
            if not names or count_sizes(space, names) > MOST_EVALUATED:
                continue
            here: list[dict[str, int]] = []
            for grids in size_grids(space, names):
                mask = _differs(arithmetic, node.output[0], grids)
                here += sizes_where(mask, grids, MOST_FOUND) if mask is not None else []
                if len(here) >= MOST_FOUND or time.monotonic() > deadline:
                    break
        except _OtherError:
            continue
        differing += [sizes for sizes in here[:MOST_FOUND] if sizes not in differing]
    return differing


def _rounds(node: onnx.NodeProto) -> bool:
    to = next((a.i for a in node.attribute if a.name == "to"), 0)
    return node.op_type in ROUNDING or (node.op_type == "Cast" and to in INTEGERS)


def _differs(arithmetic: _Arithmetic, name: str, grids: Mapping[str, Array]) -> Array | None:
    import numpy as np

    narrow = arithmetic.value(name, grids, np.float32)
    wide = arithmetic.value(name, grids, np.float64)
    mask = None
    for a, b in zip(narrow, wide, strict=True):
        other = np.asarray(a.astype(np.float64) != b.astype(np.float64))
        mask = other if mask is None else mask | other
    return mask


class _Arithmetic:
    """Values of the main graph that follow from the shapes of its inputs and from constants."""

    def __init__(self, graph: onnx.GraphProto, specs: Sequence[TensorSpec]) -> None:
        self._makers = {name: node for node in graph.node for name in node.output}
        self._constants = {t.name: t for t in graph.initializer}
        self._specs = {s.name: s for s in specs}

    def dims(self, name: str) -> frozenset[str]:
        """The names of the dims that a value depends on. Raises _OtherError."""
        dim_names: set[str] = set()
        waiting, visited = [name], {name}
        while waiting:
            node = self._makers.get(waiting.pop())
            if node is None:
                continue
            if node.op_type == "Shape":
                spec = self._specs.get(node.input[0])
                if spec is None:
                    raise _OtherError
                dim_names.update(d for d in spec.dims if isinstance(d, str))
                continue
            gathered = self._gathered_dim(node)
            if gathered is not None:
                dim_names.update(gathered)
                continue
            new = [i for i in node.input if i and i not in visited]
            visited.update(new)
            waiting += new
        return frozenset(dim_names)

    def _gathered_dim(self, node: onnx.NodeProto) -> set[str] | None:
        """The one dim that a Gather takes out of a shape; None for another node."""
        shape = self._makers.get(node.input[0]) if node.op_type == "Gather" else None
        spec = self._specs.get(shape.input[0]) if shape is not None and shape.op_type == "Shape" else None
        if spec is None:
            return None
        try:
            places = self._value(node.input[1], {}, float, {})
        except (_OtherError, AttributeError):
            return None
        start = next((a.i for a in shape.attribute if a.name == "start"), 0) if shape is not None else 0
        return {d for p in places if isinstance(d := spec.dims[start:][int(p)], str)}

    def value(self, name: str, grids: Mapping[str, Array], kind: type[np.floating[Any]]) -> Elements:
        """The elements of a value, floats as `kind`. Raises _OtherError."""
        return self._value(name, grids, kind, {})

    def _value(self, name: str, grids: Mapping[str, Array], kind: Any, cache: dict[str, Elements]) -> Elements:
        if name not in cache:
            cache[name] = self._compute(name, grids, kind, cache)
        return cache[name]

    def _compute(self, name: str, grids: Mapping[str, Array], kind: Any, cache: dict[str, Elements]) -> Elements:
        node = self._makers.get(name)
        tensor = self._constants.get(name)
        if node is not None and node.op_type == "Constant":
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
        if tensor is not None:
            return _constant(tensor, kind)
        if node is None:
            raise _OtherError
        if node.op_type == "Shape":
            return self._shape(node, grids)
        inputs = [self._value(i, grids, kind, cache) for i in node.input if i]
        return _apply(node, inputs, kind)

    def _shape(self, node: onnx.NodeProto, grids: Mapping[str, Array]) -> Elements:
        import numpy as np

        spec = self._specs.get(node.input[0])
        if spec is None:
            raise _OtherError
        ends = {a.name: a.i for a in node.attribute}
        dims = spec.dims[ends.get("start", 0) : ends.get("end", len(spec.dims))]
        # A dim that the value does not depend on in the end has no grid; whatever stands for it is dropped again.
        return [grids.get(d, np.asarray(1, np.int64)) if isinstance(d, str) else np.asarray(d, np.int64) for d in dims]


def _constant(tensor: onnx.TensorProto, kind: Any) -> Elements:
    import math

    import numpy as np
    from onnx import TensorProto, numpy_helper

    if math.prod(tensor.dims) > MOST_ELEMENTS or tensor.data_location == TensorProto.EXTERNAL:
        raise _OtherError
    values = numpy_helper.to_array(tensor).reshape(-1)
    if values.dtype == np.float32 and kind is np.float64:
        # 0.29 in the source is 0.29 in FP32 here; its shortest decimal is what was written.
        return [np.asarray(float(str(v))) for v in values]
    if values.dtype.kind not in "iuf":
        raise _OtherError
    return [np.asarray(v.astype(kind) if values.dtype.kind == "f" else v) for v in values]


def _apply(node: onnx.NodeProto, inputs: list[Elements], kind: Any) -> Elements:
    import numpy as np

    op = node.op_type
    attributes = {a.name: a for a in node.attribute}
    if op in PASSED_ON:
        return inputs[0]
    if op == "Concat":
        return [e for part in inputs for e in part]
    if op == "Gather":
        return [inputs[0][int(i)] for i in inputs[1]]
    if op == "Slice" and len(inputs) > 2 and all(len(part) == 1 for part in inputs[1:]):
        step = int(inputs[4][0]) if len(inputs) > 4 else 1
        return inputs[0][slice(int(inputs[1][0]), int(inputs[2][0]), step)]
    if op == "Cast":
        to = attributes["to"].i
        target = kind if to in FLOATS else np.int64 if to in INTEGERS else None
        if target is None:
            raise _OtherError
        return [e.astype(target) for e in inputs[0]]
    one = {"Floor": np.floor, "Ceil": np.ceil, "Round": np.rint, "Neg": np.negative, "Sqrt": np.sqrt, "Abs": np.abs}
    two = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Max": np.maximum, "Min": np.minimum}
    with np.errstate(all="ignore"):
        if op in one:
            return [np.asarray(one[op](e)) for e in inputs[0]]
        if op in two and len(inputs) == 2:
            return _paired(two[op], *inputs)
        if op == "Div" and len(inputs) == 2:
            return _paired(_divide, *inputs)
    raise _OtherError


def _divide(a: Array, b: Array) -> Array:
    """ONNX's Div: of integers the quotient without its fraction."""
    import numpy as np

    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.asarray(np.true_divide(a, b))
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1)))


def _paired(function: Any, a: Elements, b: Elements) -> Elements:
    import numpy as np

    if len(a) != len(b) and 1 not in (len(a), len(b)):
        raise _OtherError
    many = max(len(a), len(b))
    return [np.asarray(function(a[i % len(a)], b[i % len(b)])) for i in range(many)]
