"""The graph with the scales of its quantised operators moved by a rounding: the noise of whole steps is measured so.

A value beside a tie of its step goes up or down by the order in which products and quotients of scales are computed,
and everybody has an order of its own: ONNX Runtime's kernels differ from each other by CPU. The inputs of such an
operator are bytes, which no rounding moves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx

SEEDS = 4
# Operators that round to steps, beside those whose names begin with `QLinear`.
ROUNDING = ("QuantizeLinear", "DequantizeLinear", "QGemm")


def rounds_to_steps(model: onnx.ModelProto) -> bool:
    """True where some node has scales to move."""
    return any(_is_quantised(n) for n in model.graph.node)


def move_scales(model: onnx.ModelProto, seed: int, ulps: float) -> bool:
    """Move each FP32 scale of each quantised operator by so many units in its last place, up or down, in place.

    A scale that two nodes share moves in each of them for itself. Nodes of subgraphs stay as they are. False where
    there is none.
    """
    import numpy as np
    from onnx import TensorProto, numpy_helper

    if not rounds_to_steps(model):
        return False
    chance = np.random.default_rng(seed)
    step = np.float32(ulps * np.finfo(np.float32).eps)
    tensors = {t.name: t for t in model.graph.initializer}
    for number, node in enumerate(model.graph.node):
        if not _is_quantised(node):
            continue
        for index, name in enumerate(node.input):
            tensor = tensors.get(name)
            if tensor is None or tensor.data_type != TensorProto.FLOAT:
                continue
            values = numpy_helper.to_array(tensor)
            signs = chance.choice(np.array([-1.0, 1.0], np.float32), values.shape)
            moved = np.asarray(values * (np.float32(1.0) + step * signs), np.float32)
            node.input[index] = f"{name}/moved{number}_{index}"
            model.graph.initializer.append(numpy_helper.from_array(moved, node.input[index]))
    return True


def _is_quantised(node: onnx.NodeProto) -> bool:
    return bool(node.op_type.startswith("QLinear") or node.op_type in ROUNDING)
