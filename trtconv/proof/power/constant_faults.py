"""Faults in small constants: an epsilon times ten, a factor off by one percent, a threshold or a bound moved."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from trtconv.proof.power.fault import Fault, FaultGraph, attribute, with_attribute, with_input

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

_COMPARISONS = ("Greater", "Less", "GreaterOrEqual", "LessOrEqual", "Equal")
_EDGES = {"Greater": "GreaterOrEqual", "GreaterOrEqual": "Greater", "Less": "LessOrEqual", "LessOrEqual": "Less"}
# Added or floored constants up to here guard a division or a logarithm.
_LARGEST_EPSILON = 1e-3
_DEFAULT_EPSILON = 1e-5


def epsilon_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """The epsilon of a normalisation layer, or a tiny constant that is added or taken as a floor, times ten."""
    node = graph.nodes[index]
    if node.op_type.endswith("Normalization") and node.op_type != "LpNormalization":
        epsilon = float(attribute(node, "epsilon", _DEFAULT_EPSILON))
        words = f"epsilon {epsilon:g} times 10"
        yield Fault("epsilon", index, words, partial(with_attribute, node, epsilon=10.0 * epsilon))
    for position, value in _scalars(graph, index, ("Add", "Max", "Clip")):
        if 0.0 < float(value.reshape(-1)[0]) <= _LARGEST_EPSILON:
            words = f"epsilon {float(value.reshape(-1)[0]):g} times 10"
            yield Fault("epsilon", index, words, partial(with_input, node, position, _as(value, value * 10)))


def scale_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """A constant factor is off by one percent: of Mul and Div, and the gain of a normalisation."""
    node = graph.nodes[index]
    for position, value in _scalars(graph, index, ("Mul", "Div")):
        words = "a factor times 1.01"
        yield Fault("scaled", index, words, partial(with_input, node, position, _as(value, value * 1.01)))
    if node.op_type.endswith("Normalization") and len(node.input) > 1 and graph.is_float(node.input[1]):
        gain = graph.constant(node.input[1])
        assert gain is not None
        words = "the gain times 1.01"
        yield Fault("scaled", index, words, partial(with_input, node, 1, _as(gain, gain * 1.01)))


def threshold_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """A threshold moves by a twentieth, a comparison takes its edge or leaves it, a bound of Clip moves."""
    node = graph.nodes[index]
    if node.op_type in _COMPARISONS:
        for position, value in _scalars(graph, index, _COMPARISONS):
            yield Fault("threshold", index, "threshold moved", partial(with_input, node, position, _moved(value)))
    if node.op_type in _EDGES:
        other = _EDGES[node.op_type]
        yield Fault("threshold", index, f"{node.op_type} became {other}", partial(_renamed, graph, index, other))
    for position, value in _scalars(graph, index, ("Clip", "Max", "Min")):
        if not 0.0 < float(value.reshape(-1)[0]) <= _LARGEST_EPSILON:
            yield Fault("threshold", index, "bound moved", partial(with_input, node, position, _moved(value)))


def _renamed(graph: FaultGraph, index: int, name: str) -> Any:
    edit = with_attribute(graph.nodes[index])
    edit.node.op_type = name
    return edit


def _scalars(graph: FaultGraph, index: int, ops: tuple[str, ...]) -> Iterator[tuple[int, Array]]:
    """The constant inputs of one finite element, with their positions."""
    import numpy as np

    node = graph.nodes[index]
    if node.op_type not in ops or node.domain:
        return
    for position, name in enumerate(node.input):
        shape = graph.constant_shape(name) if name else None
        if shape is None or any(d != 1 for d in shape):
            continue
        value = graph.constant(name)
        if value is not None and value.dtype.kind in "fi" and bool(np.isfinite(value).all()):
            yield position, value


def _moved(value: Array) -> Array:
    import numpy as np

    if value.dtype.kind == "i":
        return _as(value, value + 1)
    return _as(value, value + 0.05 * np.maximum(np.abs(value), 0.1))


def _as(like: Array, value: Any) -> Array:
    import numpy as np

    return np.asarray(value).astype(like.dtype).reshape(like.shape)
