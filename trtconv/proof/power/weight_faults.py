"""Faults in weights: a filter replaced or doubled, a layer scaled, one weight zeroed, weights in BF16, no bias."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from trtconv.core.precision import BF16
from trtconv.proof.power.fault import Fault, FaultGraph, attribute, with_input

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Position of the weights and the axis along which the filters lie. MatMul and Gemm are decided by their operands.
_WEIGHTS = {
    "Conv": ((1, 0),),
    "ConvTranspose": ((1, 1),),
    "LSTM": ((1, 1), (2, 1)),
    "GRU": ((1, 1), (2, 1)),
    "RNN": ((1, 1), (2, 1)),
    "Gather": ((0, 0),),
    "MatMul": ((1, -1), (0, -2)),
    "Transpose": ((0, 0),),
    "Einsum": ((0, 0), (1, 0)),
    "Mul": ((1, 0), (0, 0)),
    "Add": ((1, 0), (0, 0)),
}
_BIASES = {"Conv": 2, "ConvTranspose": 2, "Gemm": 2, "LSTM": 3, "GRU": 3, "RNN": 3, "BatchNormalization": 2,
           "InstanceNormalization": 2, "LayerNormalization": 2, "GroupNormalization": 2}  # fmt: skip


def weight_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """Five faults for each float weight of two or more dims that the node reads."""
    node = graph.nodes[index]
    places = _WEIGHTS.get(node.op_type, ())
    if node.op_type == "Gemm":
        places = ((1, 0 if attribute(node, "transB", 0) else 1),)
    for position, axis in places:
        shape = graph.constant_shape(node.input[position]) if position < len(node.input) else None
        if shape is None or len(shape) < 2 or not graph.is_float(node.input[position]) or 0 in shape:
            continue
        name = node.input[position]
        random = graph.random(f"weight{position}", index)
        row = int(random.integers(shape[axis]))
        edits: list[tuple[str, str, Callable[[Array], Array]]] = [
            ("scaled", "all weights times 1.01", lambda w: w * w.dtype.type(1.01)),
            (BF16.name, "weights rounded to BF16", _rounded),
            ("zeroed", "one weight zero", partial(_zeroed, where=float(random.random()))),
            ("doubled", f"filter {row} doubled", partial(_doubled, axis=axis, row=row)),
        ]
        if shape[axis] > 1:
            other = (row + 1) % shape[axis]
            words = f"filter {row} replaced by filter {other}"
            edits.append(("neighbour", words, partial(_neighbour, axis=axis, row=row, other=other)))
        for kind, words, change in edits:
            yield Fault(kind, index, words, partial(_edit, graph, index, position, name, change))


def bias_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """The bias of a layer, or a vector that is added, is dropped."""
    node = graph.nodes[index]
    positions: tuple[int, ...] = (_BIASES[node.op_type],) if node.op_type in _BIASES else ()
    if node.op_type == "Add":
        positions = (0, 1)
    for position in positions:
        name = node.input[position] if position < len(node.input) else ""
        shape = graph.constant_shape(name)
        if shape is None or not graph.is_float(name) or max(shape, default=1) == 1:
            continue
        if node.op_type == "Add" and len([d for d in shape if d > 1]) != 1:
            continue
        yield Fault("bias", index, "bias dropped", partial(_edit, graph, index, position, name, lambda w: w * 0))


def _edit(graph: FaultGraph, index: int, position: int, name: str, change: Callable[[Array], Array]) -> Any:
    import numpy as np

    weights = graph.constant(name)
    assert weights is not None
    return with_input(graph.nodes[index], position, np.ascontiguousarray(change(weights)).astype(weights.dtype))


def _rounded(weights: Array) -> Array:
    import numpy as np

    bits = np.ascontiguousarray(weights, np.float32).view(np.uint32)
    nearest = (bits >> 16) & 1
    nearest += 0x7FFF
    nearest += bits
    nearest &= 0xFFFF0000
    return nearest.view(np.float32)


def _zeroed(weights: Array, where: float) -> Array:
    import numpy as np

    changed = weights.copy().reshape(-1)
    candidates = np.flatnonzero(changed)
    if candidates.size:
        changed[candidates[int(where * candidates.size)]] = 0
    return changed.reshape(weights.shape)


def _doubled(weights: Array, axis: int, row: int) -> Array:
    changed = weights.copy()
    changed.swapaxes(0, axis)[row] *= 2
    return changed


def _neighbour(weights: Array, axis: int, row: int, other: int) -> Array:
    changed = weights.copy()
    changed.swapaxes(0, axis)[row] = weights.swapaxes(0, axis)[other]
    return changed
