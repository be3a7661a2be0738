"""The graph with each interpolation moved by a rounding of its coordinates, by which their noise is measured.

A coordinate of an axis of `n` elements is computed in FP32 by everybody, each in another order: (i + 0.5) * n / m -
0.5, or with 1 / scale, or from -1..1. So it is off by about n * 2^-24, and the result by that times the slope there,
however exact all weights and inputs are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]

# One unit in the last place of a coordinate, relative to the length of its axis.
MOVED_BY = 2.0**-23
# `align_corners` does not use the scales; `nearest` decides, which is not noise.
BY_SCALE = ("half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric")
SMOOTH = ("linear", "cubic")


def move_coordinates(model: onnx.ModelProto, sign: int = 1) -> onnx.ModelProto | None:
    """A copy in which linear and cubic Resize and GridSample read beside their coordinates; None when it has none.

    Nodes of subgraphs stay as they are.
    """
    import onnx

    if not any(_moves(n) for n in model.graph.node):
        return None
    copied = onnx.ModelProto()
    copied.CopyFrom(model)
    nodes: list[onnx.NodeProto] = []
    for index, node in enumerate(copied.graph.node):
        if _moves(node):
            prefix = f"trtconv_moved_{index}_"
            nodes += _moved_grid(node, prefix, sign) if node.op_type == "GridSample" else _rescaled(node, prefix, sign)
        nodes.append(node)
    del copied.graph.node[:]
    copied.graph.node.extend(nodes)
    return copied


def _moves(node: onnx.NodeProto) -> bool:
    if node.domain:
        return False
    if node.op_type == "GridSample":
        return _text(node, "mode", "linear") != "nearest"
    return (
        node.op_type == "Resize"
        and _text(node, "mode", "nearest") in SMOOTH
        and _text(node, "coordinate_transformation_mode", "half_pixel") in BY_SCALE
        and _text(node, "keep_aspect_ratio_policy", "stretch") == "stretch"
        and len(node.input) > 2
    )


def _text(node: onnx.NodeProto, name: str, default: str) -> str:
    return next((a.s.decode() for a in node.attribute if a.name == name), default)


def _moved_grid(node: onnx.NodeProto, prefix: str, sign: int) -> list[onnx.NodeProto]:
    import numpy as np
    from onnx import helper

    grid = node.input[1]
    # Less would vanish beside a coordinate of 1.
    added = [
        _constant(prefix + "step", np.array([sign * MOVED_BY], np.float32)),
        helper.make_node("Add", [grid, prefix + "step"], [prefix + "grid"]),
    ]
    node.input[1] = prefix + "grid"
    return added


def _rescaled(node: onnx.NodeProto, prefix: str, sign: int) -> list[onnx.NodeProto]:
    """The scales times one and a rounding; those of 1 stay, as they copy."""
    import numpy as np
    from onnx import TensorProto, helper

    nodes: list[onnx.NodeProto] = []
    scales = node.input[2]
    if len(node.input) > 3 and node.input[3]:
        axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), [])
        nodes.append(helper.make_node("Shape", [node.input[0]], [prefix + "shape"]))
        shape = prefix + "shape"
        if axes:
            nodes.append(_constant(prefix + "axes", np.array(axes, np.int64)))
            nodes.append(helper.make_node("Gather", [shape, prefix + "axes"], [prefix + "lengths"]))
            shape = prefix + "lengths"
        nodes += [
            helper.make_node("Cast", [shape], [prefix + "before"], to=TensorProto.FLOAT),
            helper.make_node("Cast", [node.input[3]], [prefix + "after"], to=TensorProto.FLOAT),
            helper.make_node("Div", [prefix + "after", prefix + "before"], [prefix + "scales"]),
        ]
        scales = prefix + "scales"
        del node.input[3:]
    nodes += [
        _constant(prefix + "one", np.array([1.0], np.float32)),
        _constant(prefix + "factor", np.array([1.0 + sign * MOVED_BY], np.float32)),
        helper.make_node("Equal", [scales, prefix + "one"], [prefix + "copies"]),
        helper.make_node("Mul", [scales, prefix + "factor"], [prefix + "product"]),
        helper.make_node("Where", [prefix + "copies", scales, prefix + "product"], [prefix + "moved"]),
    ]
    node.input[2] = prefix + "moved"
    return nodes


def _constant(name: str, values: Array) -> onnx.NodeProto:
    from onnx import helper, numpy_helper

    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(values))
