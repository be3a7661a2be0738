"""Sums of many elements with the accuracy of FP32, as torch and engines have it.

ONNX Runtime adds one element after the other in FP32: the mean of the squares of 512 x 512 elements is off by 4e-6 of
it and that of 1024 x 1024 by 2e-5, an InstanceNormalization of the latter by 5e-5 (measured with 1.31; torch: 5e-8).
Engines add in trees. In FP64 such a sum has no error that FP32 shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from trtconv.backends.onnxruntime.axes import INT64, whole_constants, written_axes
from trtconv.core.model.bodies import replace_nodes
from trtconv.core.model.inference import infer, without_weights
from trtconv.core.model.opset import opset_of
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY
from trtconv.core.shape_space.space import parse_space
from trtconv.core.tensors import parse_tensor

if TYPE_CHECKING:
    import onnx

FLOAT, DOUBLE = 1, 11
# Of fewer elements ONNX Runtime's sums are as good as torch's.
LONG = 1 << 15
REDUCTIONS = ("ReduceMean", "ReduceSum", "ReduceSumSquare", "ReduceL1", "ReduceL2")
NORMS = ("InstanceNormalization", "GlobalAveragePool")
# ReduceMean takes its axes as an input from here on.
AXES_INPUT = 18


def holds_sums(model: bytes) -> bool:
    """A glance at a serialized model: may it hold such an operator?"""
    return any(name.encode() in model for name in (*REDUCTIONS, *NORMS))


def with_exact_sums(model: onnx.ModelProto) -> bool:
    """Compute sums in FP64 that may be over LONG elements or more, in place; true when there was one.

    Sizes are the largest that the model declares. Sums in bodies stay, and so do those over axes that are computed.
    """
    typed = _inferred(model)
    opset, axes_of = opset_of(model, 0), whole_constants(model.graph)
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        shape = typed.get(node.input[0]) if node.input and node.domain in ("", "ai.onnx") else None
        axes = None if shape is None else _axes(node, len(shape), axes_of)
        if shape is None or not axes or _count(shape, axes) < LONG:
            nodes.append(node)
        elif node.op_type in REDUCTIONS:
            nodes += in_doubles(node)
        else:
            nodes += _normalised(node, axes, len(shape), opset)
    changed = len(nodes) > len(model.graph.node)
    if changed:
        replace_nodes(model.graph, nodes)
    return changed


def _inferred(model: onnx.ModelProto) -> dict[str, tuple[int | None, ...]]:
    """The shapes of FP32 values at the largest declared sizes; None for a size that is not inferred."""
    recorded = {p.key: p.value for p in model.metadata_props}
    declared = parse_space([recorded.get(SPACE_KEY, "")]).pick("max")
    specs = [parse_tensor(line) for line in recorded.get(INPUTS_KEY, "").splitlines() if line]
    shapes = {s.name: [d if isinstance(d, int) else declared.get(d, 0) for d in s.dims] for s in specs}
    light = without_weights(model)
    for value in light.graph.input:
        for dim, size in zip(value.type.tensor_type.shape.dim, shapes.get(value.name, ()), strict=False):
            if size:
                dim.dim_value = size
    graph = infer(light).graph
    values = (*graph.input, *graph.value_info, *graph.output)
    return {
        v.name: tuple(d.dim_value if d.HasField("dim_value") else None for d in v.type.tensor_type.shape.dim)
        for v in values
        if v.type.tensor_type.elem_type == FLOAT and v.type.tensor_type.HasField("shape")
    }


def _axes(node: onnx.NodeProto, rank: int, constants: dict[str, tuple[int, ...]]) -> tuple[int, ...]:
    """The axes that a node sums over, none where it is no sum or they are computed."""
    if node.op_type in NORMS:
        return tuple(range(2, rank))
    if node.op_type not in REDUCTIONS:
        return ()
    written = written_axes(node, constants)
    if written is None:
        return ()
    keeps = any(a.name == "noop_with_empty_axes" and a.i for a in node.attribute)
    return tuple(a % rank for a in written) or (() if keeps else tuple(range(rank)))


def _count(shape: tuple[int | None, ...], axes: tuple[int, ...]) -> int:
    """How many elements are summed, as many as may be where a size is unknown."""
    count = 1
    for axis in axes:
        size = shape[axis]
        if size is None:
            return LONG
        count *= size
    return count


def in_doubles(node: onnx.NodeProto) -> list[Any]:
    """The node, whose first input and output become FP64 in place, between casts."""
    from onnx import helper

    wide, result = f"{node.output[0]}/wide", f"{node.output[0]}/sum"
    first = helper.make_node("Cast", [node.input[0]], [wide], to=DOUBLE)
    last = helper.make_node("Cast", [result], [node.output[0]], to=FLOAT)
    node.input[0], node.output[0] = wide, result
    return [first, node, last]


def _normalised(node: onnx.NodeProto, axes: tuple[int, ...], rank: int, opset: int) -> list[Any]:
    """A norm, or a mean over all places, by moments in FP64."""
    from onnx import helper

    y = node.output[0]

    def mean(source: str, output: str) -> list[Any]:
        if opset < AXES_INPUT:
            return [helper.make_node("ReduceMean", [source], [output], axes=axes, keepdims=1)]
        constant = helper.make_node("Constant", [], [f"{output}/axes"], value_ints=axes)
        return [constant, helper.make_node("ReduceMean", [source, f"{output}/axes"], [output], keepdims=1)]

    def tensor(name: str, kind: int, shape: Sequence[int], values: Sequence[float]) -> Any:
        return helper.make_node("Constant", [], [name], value=helper.make_tensor(name, kind, shape, values))

    names = ("wide", "mean", "centred", "square", "variance", "epsilon", "shifted", "deviation", "scaled", "narrow")
    wide, average, centred, square, variance, epsilon, shifted, deviation, scaled, narrow = (
        f"{y}/sums/{part}" for part in names
    )
    start = [helper.make_node("Cast", [node.input[0]], [wide], to=DOUBLE), *mean(wide, average)]
    if node.op_type == "GlobalAveragePool":
        return [*start, helper.make_node("Cast", [average], [y], to=FLOAT)]
    added = next((a.f for a in node.attribute if a.name == "epsilon"), 1e-5)
    channels = tensor(f"{y}/sums/channels", INT64, [rank - 1], [-1] + [1] * (rank - 2))
    weights = [f"{y}/sums/{part}" for part in ("weight", "bias")]
    return [
        *start,
        helper.make_node("Sub", [wide, average], [centred]),
        helper.make_node("Mul", [centred, centred], [square]),
        *mean(square, variance),
        tensor(epsilon, DOUBLE, [], [added]),
        helper.make_node("Add", [variance, epsilon], [shifted]),
        helper.make_node("Sqrt", [shifted], [deviation]),
        helper.make_node("Div", [centred, deviation], [scaled]),
        helper.make_node("Cast", [scaled], [narrow], to=FLOAT),
        channels,
        *(
            helper.make_node("Reshape", [source, channels.output[0]], [weight])
            for source, weight in zip(node.input[1:3], weights, strict=True)
        ),
        helper.make_node("Mul", [narrow, weights[0]], [f"{y}/sums/weighted"]),
        helper.make_node("Add", [f"{y}/sums/weighted", weights[1]], [y], name=node.name),
    ]
