"""Faults in attributes: a pad on the other side, a mode, a perm, an axis; and inputs in another order."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

from trtconv.proof.power.fault import Edit, Fault, FaultGraph, attribute, copy_of, with_attribute, with_input

if TYPE_CHECKING:
    import onnx

# Operator -> attribute, its default, and what it becomes.
_MODES: dict[str, tuple[tuple[str, Any, dict[Any, Any]], ...]] = {
    "Resize": (
        ("coordinate_transformation_mode", "half_pixel",
         {"half_pixel": "asymmetric", "pytorch_half_pixel": "align_corners", "align_corners": "half_pixel",
          "asymmetric": "half_pixel"}),
        ("mode", "nearest", {"nearest": "linear", "linear": "nearest", "cubic": "linear"}),
        ("nearest_mode", "round_prefer_floor", {"floor": "ceil", "round_prefer_floor": "floor", "ceil": "floor",
                                                "round_prefer_ceil": "floor"}),
    ),
    "AveragePool": (("count_include_pad", 0, {0: 1, 1: 0}), ("ceil_mode", 0, {0: 1, 1: 0})),
    "MaxPool": (("ceil_mode", 0, {0: 1, 1: 0}),),
    "GridSample": (("align_corners", 0, {0: 1, 1: 0}),
                   ("padding_mode", "zeros", {"zeros": "border", "border": "zeros", "reflection": "border"})),
    "Gelu": (("approximate", "none", {"none": "tanh", "tanh": "none"}),),
    "DepthToSpace": (("mode", "DCR", {"DCR": "CRD", "CRD": "DCR"}),),
    "Pad": (("mode", "constant", {"reflect": "edge", "edge": "reflect", "constant": "edge", "wrap": "edge"}),),
    "CumSum": (("exclusive", 0, {0: 1, 1: 0}), ("reverse", 0, {0: 1, 1: 0})),
    "TopK": (("largest", 1, {0: 1, 1: 0}),),
    "Trilu": (("upper", 1, {0: 1, 1: 0}),),
    "RoiAlign": (("coordinate_transformation_mode", "half_pixel", {"half_pixel": "output_half_pixel",
                                                                   "output_half_pixel": "half_pixel"}),
                 ("mode", "avg", {"avg": "max", "max": "avg"})),
    "GRU": (("linear_before_reset", 0, {0: 1, 1: 0}),),
    "ScatterElements": (("reduction", "none", {"none": "add", "add": "none", "max": "add", "min": "add"}),),
    "ScatterND": (("reduction", "none", {"none": "add", "add": "none", "max": "add", "min": "add"}),),
}  # fmt: skip
# Parameters of activations: attribute and default; ten percent more is the fault.
_ALPHAS = {
    "LeakyRelu": ("alpha", 0.01),
    "Elu": ("alpha", 1.0),
    "ThresholdedRelu": ("alpha", 1.0),
    "HardSigmoid": ("alpha", 0.2),
    "Celu": ("alpha", 1.0),
    "Selu": ("gamma", 1.0507),
}
_OTHERS = {"Relu": ("LeakyRelu", {"alpha": 0.01}), "Sigmoid": ("HardSigmoid", {}), "Softplus": ("Relu", {})}
_ORDERED = ("Sub", "Div", "Concat", "Less", "Greater", "MatMul", "Pow")
_AXES = {"Softmax": -1, "LogSoftmax": -1, "Concat": None, "Gather": 0, "Flatten": 1, "ArgMax": 0, "ArgMin": 0,
         "GatherElements": 0, "ScatterElements": 0, "LayerNormalization": -1, "LpNormalization": -1}  # fmt: skip
_PADDED = ("Conv", "ConvTranspose", "MaxPool", "AveragePool", "LpPool")


def mode_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """A mode or a flag of the operator, or the parameter of an activation, is another one."""
    node = graph.nodes[index]
    if node.domain:
        return
    for name, default, changes in _MODES.get(node.op_type, ()):
        before = attribute(node, name, default)
        if before in changes and not (name == "nearest_mode" and attribute(node, "mode", "nearest") != "nearest"):
            after = changes[before]
            words = f"{name} {before} became {after}"
            yield Fault("mode", index, words, partial(with_attribute, node, **{name: after}))
    if node.op_type in _ALPHAS:
        name, default = _ALPHAS[node.op_type]
        value = float(attribute(node, name, default))
        words = f"{name} {value:g} times 1.1"
        yield Fault("mode", index, words, partial(with_attribute, node, **{name: 1.1 * value}))
    if node.op_type in _OTHERS:
        other, values = _OTHERS[node.op_type]
        yield Fault("mode", index, f"{node.op_type} became {other}", partial(_replaced, node, other, values))


def pad_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """One row of padding goes to the other side of its axis."""
    node = graph.nodes[index]
    if node.op_type in _PADDED and not node.domain:
        auto = {"SAME_UPPER": "SAME_LOWER", "SAME_LOWER": "SAME_UPPER"}.get(attribute(node, "auto_pad", "NOTSET"))
        if auto:
            yield Fault("pad", index, f"auto_pad became {auto}", partial(with_attribute, node, auto_pad=auto))
        moved = _moved(list(attribute(node, "pads", ())))
        if moved:
            yield Fault("pad", index, "a pad on the other side", partial(with_attribute, node, pads=moved))
    if node.op_type == "Pad" and len(node.input) > 1:
        pads = graph.constant(node.input[1])
        moved = _moved([int(p) for p in pads]) if pads is not None else None
        if pads is not None and moved:
            import numpy as np

            value = np.asarray(moved, pads.dtype)
            yield Fault("pad", index, "a pad on the other side", partial(with_input, node, 1, value))


def _moved(pads: list[int]) -> list[int] | None:
    """The pads with one taken from the end of an axis to its beginning, or back; None where there is none."""
    half = len(pads) // 2
    for axis in reversed(range(half)):
        for source, target in ((half + axis, axis), (axis, half + axis)):
            if pads[source] > 0:
                changed = list(pads)
                changed[source] -= 1
                changed[target] += 1
                return changed
    return None


def order_faults(graph: FaultGraph, index: int) -> Iterator[Fault]:
    """Two inputs swapped, a perm with its last two places swapped, another axis."""
    node = graph.nodes[index]
    if node.domain:
        return
    if node.op_type in _ORDERED and len(node.input) > 1 and node.input[0] != node.input[1]:
        yield Fault("order", index, "the first two inputs swapped", partial(_swapped, node))
    perm = list(attribute(node, "perm", ())) if node.op_type == "Transpose" else []
    if len(perm) > 1:
        words = "perm with its last two places swapped"
        yield Fault("order", index, words, partial(with_attribute, node, perm=[*perm[:-2], perm[-1], perm[-2]]))
    if node.op_type in _AXES:
        axis = attribute(node, "axis", _AXES[node.op_type])
        other = axis + 1 if axis < -1 or axis >= 0 else axis - 1
        if node.op_type != "Concat" and axis > 0:
            other = axis - 1
        yield Fault("axis", index, f"axis {axis} became {other}", partial(with_attribute, node, axis=other))
    if node.op_type.startswith("Reduce"):
        yield from _reduced_axes(graph, index)


def _reduced_axes(graph: FaultGraph, index: int) -> Iterator[Fault]:
    import numpy as np

    node = graph.nodes[index]
    axes = list(attribute(node, "axes", ()))
    constant = graph.constant(node.input[1]) if len(node.input) > 1 and node.input[1] else None
    listed = axes or ([int(a) for a in constant.reshape(-1)] if constant is not None else [])
    if not listed:
        return
    first = listed[0]
    other = first - 1 if first > 0 or first < -1 else first + 1 if first == 0 else -2
    if other in listed:
        return
    changed = [other, *listed[1:]]
    words = f"axis {first} became {other}"
    if axes:
        yield Fault("axis", index, words, partial(with_attribute, node, axes=changed))
    else:
        yield Fault("axis", index, words, partial(with_input, node, 1, np.asarray(changed, np.int64)))


def _swapped(node: onnx.NodeProto) -> Edit:
    changed = copy_of(node)
    changed.input[0], changed.input[1] = node.input[1], node.input[0]
    return Edit(changed)


def _replaced(node: onnx.NodeProto, op: str, values: dict[str, Any]) -> Edit:
    import onnx

    return Edit(onnx.helper.make_node(op, list(node.input[:1]), list(node.output), node.name, **values))
