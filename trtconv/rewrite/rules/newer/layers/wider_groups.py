"""A convolution in many narrow groups as one in fewer, wider groups, whose weights between the old ones are zero.

TensorRT 8.6 has kernels on tensor cores for groups of 4, 8, 16, 32 and 64 channels. Groups of other widths, as in
most RegNets, it computes one by one: three blocks of 576 channels in groups of 24, at 14 by 14 pixels in FP16, took 204
us at batch 1 and 258 at batch 8 on an H100; in two groups of 288 they take 76 and 124 (`gpu_wider_groups.json`). The
weights grow as much as the groups. In TF32 it pays too (152 and 265 us become 112 and 215), in FP32 it cannot, and the
graph does not say which of both it will be: there `--also wider-groups` asks for it.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from trtconv.core.precision import FP16
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

# Widths from 24 to 112 were measured, and merged groups of up to 504 channels.
LEAST_WIDTH, MOST_WIDTH, WIDEST = 24, 112, 512
LARGEST_WEIGHTS = 1 << 24


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match a Conv of images with as many channels out as in, and constant weights [C, width, k, k]."""
    groups = node.attr("group", 1)
    weight = graph.constant(node.inputs[1], limit=LARGEST_WEIGHTS) if groups > 1 else None
    if weight is None or weight.ndim != 4 or weight.dtype.kind != "f":
        return NOT_THIS
    channels, width = weight.shape[:2]
    if not LEAST_WIDTH <= width <= MOST_WIDTH or width & (width - 1) == 0 or channels != groups * width:
        return NOT_THIS
    merged = merged_groups(groups, width)
    if merged == 1:
        return Skip(f"its {groups} groups of {width} channels cannot be merged evenly into ones of at most {WIDEST}")
    if weight.size * merged > LARGEST_WEIGHTS:
        return Skip("its weights would become too large")
    return Found((node,), partial(_build, node=node, weight=weight, groups=groups, merged=merged))


def merged_groups(groups: int, width: int) -> int:
    """How many groups of `width` channels become one: the most that divide `groups` and stay within WIDEST."""
    return max(m for m in range(1, groups + 1) if groups % m == 0 and (m == 1 or m * width <= WIDEST))


def _build(g: Replacement, node: Node, weight: Array, groups: int, merged: int) -> Value:
    attributes = {name: node.attr(name) for name in ("auto_pad", "dilations", "kernel_shape", "pads", "strides")}
    return g.op(
        "Conv",
        node.inputs[0],
        g.const(between_zeros(weight, merged), "weight"),
        *node.inputs[2:],
        group=groups // merged,
        **{name: value for name, value in attributes.items() if value is not None},
    )


def between_zeros(weight: Array, merged: int) -> Array:
    """The weights [C, merged * width, k, k] that give what [C, width, k, k] give in `merged` times as many groups."""
    channels, width, *kernel = weight.shape
    own = weight.reshape(-1, merged, width, width, *kernel)
    wider = np.zeros((own.shape[0], merged, width, merged, width, *kernel), weight.dtype)
    for group in range(merged):
        wider[:, group, :, group] = own[:, group]
    return wider.reshape(channels, merged * width, *kernel)


RULE = Rule(
    name="wider-groups",
    why="TensorRT 8.6 computes groups of 24 channels and the like one by one; wider ones run on tensor cores.",
    ops=("Conv",),
    find=find,
    needed=only_tensorrt_8,
    # The zeros between the groups meet their neighbours' channels.
    keeps_infinities=False,
    precisions=(FP16.name,),
    before="Conv(x[N,576,H,W], w[576,24,3,3], group 24)",
    after="Conv(x, w[576,288,3,3], group 2)",
)
