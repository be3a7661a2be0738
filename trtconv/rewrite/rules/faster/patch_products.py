"""A convolution over patches that touch but do not overlap, as one product of all patches by a matrix.

How vision transformers begin, how ConvNeXt goes down a level and how the pyramid of PVTv2 shortens its keys. TensorRT
8.6 has slow kernels for that on Hopper: of ViT-B in FP16 at batch 8 the first convolution, 16 by 16, took 51 of 1190
us, and it parts the network from its input and from what follows. It fires where the result is wanted channels last.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from trtconv.core.precision import FP16
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_tensorrt_8
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement

ROWS, TO_LAST, TO_FIRST = [0, 2, 1], [0, 2, 3, 1], [0, 3, 1, 2]
LARGEST_WEIGHTS = 1 << 24
# Elements of a patch that is cut from an image with channels first: 768 paid (ViT), 48 did not (Swin-T at batch 1).
LEAST_CUT = 256


@dataclass(frozen=True)
class Patches:
    """The convolution, its weights, and where its image lies: `x`, whose channels are last or first."""

    conv: Node
    weight: Array
    x: str
    channels_last: bool
    height: int
    width: int


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match Transpose(Conv(x)) to channels last, with the pixels in rows and columns or, by a Reshape, in one row."""
    perm = list(node.attr("perm", ()))
    reshape = graph.maker(node.inputs[0], "Reshape") if perm == ROWS else None
    conv = graph.maker(reshape.inputs[0] if reshape else node.inputs[0], "Conv") if reshape or perm == TO_LAST else None
    if conv is None or not _touches(conv):
        return NOT_THIS
    between = (conv,) if reshape is None else (conv, reshape)
    weight = graph.constant(conv.inputs[1], limit=LARGEST_WEIGHTS)
    if weight is None or weight.ndim != 4 or not all(graph.used_once(n.output) for n in between):
        return Skip("its weights are computed, or what it gives is used elsewhere too")
    result, sizes = graph.dims(conv.output), (graph.dims(conv.inputs[0]) or ())[2:]
    kernel = weight.shape[2:]
    if result is None or any(
        not isinstance(s, int) or s % k or s // k != r for s, k, r in zip(sizes, kernel, result[2:], strict=True)
    ):
        return Skip("height and width are not known as whole numbers of patches")
    height, width = (int(s or 0) // k for s, k in zip(sizes, kernel, strict=True))
    if reshape is not None and (graph.dims(node.output) or ())[1:] != (height * width, weight.shape[0]):
        return Skip("the Reshape is not known to put all pixels into one row")
    x, before = _source(graph, conv, sizes)
    if not before and weight[0].size < LEAST_CUT:
        return Skip(f"its patches have {weight[0].size} elements: cutting them from the image costs more than it saves")
    patches = Patches(conv, weight, x, bool(before), height, width)
    return Found((*before, *between, node), partial(_build, patches=patches, in_rows=reshape is not None))


def _touches(conv: Node) -> bool:
    kernel = list(conv.attr("kernel_shape", ()))
    return (
        len(kernel) == 2
        and max(kernel) > 1
        and list(conv.attr("strides", ())) == kernel
        and conv.attr("group", 1) == 1
        and set(conv.attr("dilations", (1,))) == {1}
        and not any(conv.attr("pads", ()))
        and conv.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID")
    )


def _source(graph: Graph, conv: Node, sizes: tuple[int | str | None, ...]) -> tuple[str, tuple[Node, ...]]:
    """The image and no nodes, or the value, channels last, from which a Transpose made it, and the nodes that did."""
    image = conv.inputs[0]
    transpose = graph.maker(image, "Transpose")
    if transpose is not None and list(transpose.attr("perm", ())) == TO_FIRST:
        return transpose.inputs[0], (transpose,)
    reshape = graph.maker(image, "Reshape")
    transpose = graph.maker(reshape.inputs[0], "Transpose") if reshape is not None else None
    channels = (graph.dims(image) or (None, None))[1]
    swaps = transpose is not None and list(transpose.attr("perm", ())) == ROWS
    if reshape is not None and transpose is not None and swaps and isinstance(channels, int):
        # As many pixels and the same channels: the batch, which alone may move, is the same too.
        pixels = int(sizes[0] or 0) * int(sizes[1] or 0)
        if (graph.dims(transpose.output) or ())[1:] == (channels, pixels):
            return transpose.inputs[0], (transpose, reshape)
    return image, ()


def _build(g: Replacement, patches: Patches, in_rows: bool) -> Value:
    outputs, inputs, down, across = patches.weight.shape
    height, width, length = patches.height, patches.width, inputs * down * across
    if patches.channels_last:
        split = g.transpose(g.reshape(patches.x, -1, height, down, width, across, inputs), 0, 1, 3, 2, 4, 5)
        # One product of all rows: PVTv2 took 0.946 ms with it and 0.960 with one product for each image.
        rows, matrix = g.reshape(split, -1, length), patches.weight.transpose(2, 3, 1, 0)
    else:
        split = g.transpose(g.reshape(patches.x, -1, inputs, height, down, width, across), 0, 2, 4, 1, 3, 5)
        rows, matrix = g.reshape(split, -1, height * width, length), patches.weight.transpose(1, 2, 3, 0)
    y = g.matmul(rows, g.const(np.ascontiguousarray(matrix.reshape(length, outputs)), "weight"))
    if patches.conv.input(2):
        y = g.add(y, patches.conv.inputs[2])
    if in_rows:
        return g.reshape(y, -1, height * width, outputs) if patches.channels_last else y
    return g.reshape(y, -1, height, width, outputs)


RULE = Rule(
    name="patch-products",
    why="A convolution over patches is a product by a matrix, for which TensorRT 8.6 has the faster kernels on Hopper.",
    ops=("Transpose",),
    find=find,
    needed=only_tensorrt_8,
    precisions=(FP16.name,),
    before="Transpose(Reshape(Conv(x[N,3,224,224], w[C,3,16,16], strides 16), [N,C,196]), [0,2,1])",
    after="MatMul(Reshape(Transpose(Reshape(x, [N,3,14,16,14,16]), [0,2,4,1,3,5]), [N,196,768]), w[768,C])",
)
