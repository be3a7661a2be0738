"""The graph with what its instance norms normalise moved by a rounding: the noise of flat planes is measured so.

A plane of equal values has no variance, and what rounding leaves in it is multiplied by 1 / sqrt(epsilon), 316 times
for the usual 1e-5: fifteen such norms make anything of it. Whether the planes of a flat image come out equal to the
last bit depends on how a convolution is cut into tiles, so one engine has that noise where another has none; measured
with a style network of zeros, torch is off by 10 of 255 from its FP64, in which the tiles lie otherwise. The inputs
of the network do not show it where its first bias swallows what moves them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.core.model.bodies import replace_nodes

if TYPE_CHECKING:
    import onnx

SEEDS = 2


def normalises_planes(model: onnx.ModelProto) -> bool:
    """True where some node of the graph, bodies aside, normalises planes."""
    return any(_is_norm(n) for n in model.graph.node)


def move_planes(model: onnx.ModelProto, seed: int, ulps: float) -> None:
    """Multiply each input of an InstanceNormalization by 1 and up to so many units, by element, in place."""
    import numpy as np
    from onnx import helper

    step = ulps * float(np.finfo(np.float32).eps)
    nodes = []
    for number, node in enumerate(model.graph.node):
        if _is_norm(node):
            factors, moved = f"{node.input[0]}/factors{number}", f"{node.input[0]}/moved{number}"
            nodes.append(
                helper.make_node(
                    "RandomUniformLike", [node.input[0]], [factors], low=1 - step, high=1 + step,
                    seed=float(1 + seed * len(model.graph.node) + number),
                )
            )  # fmt: skip
            nodes.append(helper.make_node("Mul", [node.input[0], factors], [moved]))
            node.input[0] = moved
        nodes.append(node)
    replace_nodes(model.graph, nodes)


def _is_norm(node: onnx.NodeProto) -> bool:
    return node.op_type == "InstanceNormalization" and node.domain in ("", "ai.onnx")
