"""Arithmetic on shapes inside a graph, evaluated with NumPy at all joint sizes at once."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from trtconv.core.model.bodies import graphs_of, walk_nodes
from trtconv.core.shape_space.derived import names_of, size_of
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec
from trtconv.proof.joint_sizes import count_sizes, size_grids, sizes_where
from trtconv.proof.size_elements import STRUCTURAL, Elements, NotSizesError, arrange, broadcast

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

Dim = TypeVar("Dim")
INTEGERS, FLOAT, BOOL, HALF, DOUBLE, BFLOAT16 = (*range(2, 8), 12, 13), 1, 9, 10, 11, 16
MOST_ELEMENTS = 64
MOST_EVALUATED = 1 << 25
COMPARING = {
    "Equal": "equal",
    "Less": "less",
    "LessOrEqual": "less_equal",
    "Greater": "greater",
    "GreaterOrEqual": "greater_equal",
    "And": "logical_and",
    "Or": "logical_or",
    "Xor": "logical_xor",
}
# NumPy's functions of one number and of two, by the operator.
OF_ONE = {
    "Floor": "floor", "Ceil": "ceil", "Round": "rint", "Neg": "negative", "Sqrt": "sqrt", "Abs": "abs",
    "Reciprocal": "reciprocal", "Log": "log", "Exp": "exp", "Sin": "sin", "Cos": "cos", "Tan": "tan", "Tanh": "tanh",
}  # fmt: skip
OF_ALL = {"ReduceProd": "multiply", "ReduceSum": "add"}
OF_TWO = {"Add": "add", "Sub": "subtract", "Mul": "multiply", "Max": "maximum", "Min": "minimum", "Pow": "power"}
OF_TWO |= COMPARING
# Computed otherwise by each library, to the last bit.
LIBRARY = frozenset(("Log", "Exp", "Sin", "Cos", "Tan", "Tanh", "Pow"))


def truths(graph: onnx.GraphProto, name: str, specs: Sequence[TensorSpec], space: ShapeSpace) -> set[bool]:
    """What a condition comes to over the whole space. Raises NotSizesError where that cannot be evaluated."""
    import numpy as np

    arithmetic, names = _evaluable(graph, specs, space, name)
    answers: set[bool] = set()
    for grids in size_grids(space, names):
        answers |= {bool(v) for v in np.unique(arithmetic.value(name, grids, np.float32)[0])}
        if len(answers) == 2:
            break
    return answers


def _evaluable(
    graph: onnx.GraphProto, specs: Sequence[TensorSpec], space: ShapeSpace, *values: str
) -> tuple[SizeArithmetic, list[str]]:
    """The arithmetic of a graph, and the dims that values depend on. Raises NotSizesError for too many joint sizes."""
    arithmetic = SizeArithmetic(graph, specs)
    depends = frozenset[str]().union(*map(arithmetic.dims, values))
    names = [n for n in space if n in depends]
    if count_sizes(space, names) > MOST_EVALUATED:
        raise NotSizesError
    return arithmetic, names


def sizes_beside_turns(
    graph: onnx.GraphProto, name: str, specs: Sequence[TensorSpec], space: ShapeSpace, most: int
) -> list[dict[str, int]]:
    """Joint sizes next to which a condition turns, of both sides; up to `most` along each dim and side.

    Only the dims that it depends on are in them. Raises NotSizesError where it cannot be evaluated.
    """
    import numpy as np

    arithmetic, names = _evaluable(graph, specs, space, name)
    beside: list[dict[str, int]] = []
    for grids in size_grids(space, names):
        shape = np.broadcast_shapes(*(g.shape for g in grids.values()))
        holds = np.broadcast_to(np.asarray(arithmetic.value(name, grids, np.float32)[0]).astype(bool), shape)
        for axis in range(holds.ndim):
            turns = np.diff(holds, axis=axis)
            ends = np.zeros_like(np.take(holds, [0], axis))
            for parts in ((turns, ends), (ends, turns)):
                beside += sizes_where(np.concatenate(parts, axis), grids, most)
    return beside


def least_where(
    graph: onnx.GraphProto, size: str, condition: str, answer: bool, specs: Sequence[TensorSpec], space: ShapeSpace
) -> tuple[int, int]:
    """The least that a size comes to among the joint sizes at which a condition has this answer, and among all.

    Raises NotSizesError where either cannot be evaluated, or the condition never has it.
    """
    import numpy as np

    arithmetic, names = _evaluable(graph, specs, space, size, condition)
    chosen: list[int] = []
    every: list[int] = []
    for grids in size_grids(space, names):
        values, answers = (np.asarray(arithmetic.value(n, grids, np.float32)[0]) for n in (size, condition))
        shape = np.broadcast_shapes(values.shape, answers.shape)
        values = np.broadcast_to(values, shape)
        here = values[np.broadcast_to(answers.astype(bool), shape) == answer]
        chosen += [int(here.min())] if here.size else []
        every.append(int(values.min()))
    if not chosen:
        raise NotSizesError
    return min(chosen), min(every)


def dims_of_shape(node: onnx.NodeProto, dims: Sequence[Dim]) -> Sequence[Dim]:
    """Those of the dims of its input that a Shape gives."""
    ends = {a.name: a.i for a in node.attribute}
    return dims[ends.get("start", 0) : ends.get("end", len(dims))]


class SizeArithmetic:
    """Values that follow from the shapes of a graph's inputs and from constants, those in bodies by their names.

    A body's own inputs, as the number of a turn, are no sizes, and a name that two bodies give is neither.
    """

    def __init__(self, graph: onnx.GraphProto, specs: Sequence[TensorSpec]) -> None:
        nodes = list(walk_nodes(graph.node))
        times = Counter(name for node in nodes for name in node.output)
        self._makers = {name: node for node in nodes for name in node.output if times[name] == 1}
        fed = {i.name for g in graphs_of(graph) for i in g.input}
        self._constants = {t.name: t for g in graphs_of(graph) for t in g.initializer if t.name not in fed}
        self._specs = {s.name: s for s in specs}

    def asks_library(self, name: str) -> bool:
        """True for a value that is computed by a function of `LIBRARY`."""
        return any(node.op_type in LIBRARY for node, _ in self._nodes_behind(name))

    def dims(self, name: str) -> frozenset[str]:
        """The names of the dims that a value depends on. Raises NotSizesError."""
        dim_names: set[str] = set()
        for node, gathered in self._nodes_behind(name):
            if gathered is not None:
                dim_names.update(gathered)
            elif node.op_type in ("Shape", "Size"):
                spec = self._specs.get(node.input[0])
                if spec is None:
                    raise NotSizesError
                dim_names.update(spec.names())
        return frozenset(dim_names)

    def _nodes_behind(self, name: str) -> Iterator[tuple[onnx.NodeProto, set[str] | None]]:
        """The nodes that a value is computed by, as far as the shapes, and the dim of a Gather that takes one out."""
        waiting, visited = [name], {name}
        while waiting:
            node = self._makers.get(waiting.pop())
            if node is None:
                continue
            gathered = self._gathered_dim(node)
            yield node, gathered
            if node.op_type not in ("Shape", "Size") and gathered is None:
                new = [i for i in node.input if i and i not in visited]
                visited.update(new)
                waiting += new

    def _gathered_dim(self, node: onnx.NodeProto) -> set[str] | None:
        """The one dim that a Gather takes out of a shape; None for another node."""
        import numpy as np

        shape = self._makers.get(node.input[0]) if node.op_type == "Gather" else None
        spec = self._specs.get(shape.input[0]) if shape is not None and shape.op_type == "Shape" else None
        if shape is None or spec is None:
            return None
        dims = dims_of_shape(shape, spec.dims)
        try:
            chosen = [dims[int(i)] for i in self.value(node.input[1], {}, np.float64)]
        except (NotSizesError, AttributeError, IndexError):
            return None
        return {n for d in chosen for n in names_of(d)}

    def value(self, name: str, grids: Mapping[str, Array], kind: type[np.floating[Any]]) -> list[Array]:
        """The elements of a value in their order, floats as `kind`, each over the joint sizes. Raises NotSizesError."""
        return self._value(name, grids, kind, {}).items

    def _value(self, name: str, grids: Mapping[str, Array], kind: Any, cache: dict[str, Elements]) -> Elements:
        if name not in cache:
            cache[name] = self._compute(name, grids, kind, cache)
        return cache[name]

    def _compute(self, name: str, grids: Mapping[str, Array], kind: Any, cache: dict[str, Elements]) -> Elements:
        import numpy as np

        node = self._makers.get(name)
        tensor = self._constants.get(name)
        if node is not None and node.op_type == "Constant":
            tensor = next((a.t for a in node.attribute if a.name == "value"), None)
            numbers = next((a for a in node.attribute if a.name in ("value_int", "value_ints")), None)
            if numbers is not None:
                several = numbers.name == "value_ints"
                return Elements([np.asarray(i, np.int64) for i in (numbers.ints if several else [numbers.i])], several)
        if tensor is not None:
            return _constant(tensor, kind)
        if node is None:
            raise NotSizesError
        if node.op_type == "Shape":
            return Elements(self._shape(node, grids))
        if node.op_type == "Size":
            product = functools.reduce(np.multiply, self._shape(node, grids), np.asarray(1, np.int64))
            return Elements([np.asarray(product)], False)
        inputs = [self._value(i, grids, kind, cache) for i in node.input if i]
        return _apply(node, inputs, kind)

    def _shape(self, node: onnx.NodeProto, grids: Mapping[str, Array]) -> list[Array]:
        import numpy as np

        spec = self._specs.get(node.input[0])
        if spec is None:
            raise NotSizesError
        dims = dims_of_shape(node, spec.dims)
        # A dim that the value does not depend on in the end has no grid; whatever stands for it is dropped again.
        values = {**{n: np.asarray(1, np.int64) for d in dims for n in names_of(d)}, **grids}
        return [np.asarray(size_of(d, values), np.int64) for d in dims]


def _constant(tensor: onnx.TensorProto, kind: Any) -> Elements:
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if math.prod(tensor.dims) > MOST_ELEMENTS or tensor.data_location == TensorProto.EXTERNAL:
        raise NotSizesError
    values, shape = numpy_helper.to_array(tensor).reshape(-1), tuple(tensor.dims)
    if values.dtype == np.float32 and kind is np.float64:
        # 0.29 in the source is 0.29 in FP32 here; its shortest decimal is what was written.
        return Elements.shaped([np.asarray(float(str(v))) for v in values], shape)
    if values.dtype.kind not in "iufb":
        raise NotSizesError
    return Elements.shaped([np.asarray(v) for v in values], shape)


def _apply(node: onnx.NodeProto, inputs: list[Elements], kind: Any) -> Elements:
    import numpy as np

    op = node.op_type
    attributes = {a.name: a for a in node.attribute}
    if op in STRUCTURAL:
        return arrange(op, attributes, inputs)
    if op == "Cast":
        return inputs[0].mapped(functools.partial(_cast, to=attributes["to"].i, kind=kind))
    with np.errstate(all="ignore"):
        if op in OF_ONE:
            return inputs[0].mapped(getattr(np, OF_ONE[op]))
        if op == "Pow" and any(e.dtype.kind != "f" for e in inputs[0].items):
            # Of whole numbers the result has their type, whatever that of the exponent.
            raise NotSizesError
        if op in OF_TWO and len(inputs) == 2:
            return broadcast(getattr(np, OF_TWO[op]), inputs)
        if op == "Div" and len(inputs) == 2:
            return broadcast(_divide, inputs)
        if op == "Mod" and len(inputs) == 2:
            return broadcast(np.fmod if "fmod" in attributes and attributes["fmod"].i else _modulo, inputs)
        if op == "Not":
            return inputs[0].mapped(np.logical_not)
        if op == "Where":
            return broadcast(np.where, inputs)
        if op in OF_ALL and len(inputs) == 1 and not attributes.get("axes"):
            total = np.asarray(functools.reduce(getattr(np, OF_ALL[op]), inputs[0].items))
            keeps = attributes["keepdims"].i if "keepdims" in attributes else 1
            return Elements.shaped([total], (1,) * len(inputs[0].shape) if keeps else ())
    raise NotSizesError


def _cast(number: Array, to: int, kind: Any) -> Array:
    """To an ONNX element type; floats to `kind`, FP64 to itself. Whole numbers wrap as they do in ONNX Runtime.

    Halves round sizes from 2049 on, as ONNX defines them, where `kind` is not what was written; ONNX Runtime computes
    them in FP32 and leaves roundings out. Raises NotSizesError for bfloat16, which NumPy lacks, and for floats beyond
    the whole numbers of a type, of which each library makes another.
    """
    import numpy as np
    from onnx import helper

    if to == BFLOAT16 and kind is not np.float64:
        raise NotSizesError
    if to in (FLOAT, HALF, BFLOAT16):
        with np.errstate(over="ignore"):
            return number.astype(np.float16 if to == HALF and kind is np.float32 else kind)
    if to not in (*INTEGERS, BOOL, DOUBLE):
        raise NotSizesError
    dtype = helper.tensor_dtype_to_np_dtype(to)
    if to in INTEGERS and number.dtype.kind == "f":
        limits = np.iinfo(dtype)
        # A NaN is in no range. The largest int64 is no float: the next one is beyond it.
        wide = number.astype(np.float64)
        if not np.all((wide >= limits.min) & (wide < float(limits.max) + 1.0)):
            raise NotSizesError
    return number.astype(dtype)


def _divide(a: Array, b: Array) -> Array:
    """ONNX's Div: of integers the quotient without its fraction."""
    import numpy as np

    if a.dtype.kind == "f" or b.dtype.kind == "f":
        return np.asarray(np.true_divide(a, b))
    dtype = np.result_type(a, b)
    a, b = a.astype(np.int64), b.astype(np.int64)
    return np.asarray(np.sign(a) * np.sign(b) * (np.abs(a) // np.maximum(np.abs(b), 1))).astype(dtype)


def _modulo(a: Array, b: Array) -> Array:
    """The remainder with the sign of the divisor."""
    import numpy as np

    if a.dtype.kind == "f" or not np.all(b):
        raise NotSizesError
    return np.asarray(np.mod(a, b))
