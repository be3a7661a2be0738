"""Rows of tokens that are laid out as an image, convolved, and laid out as rows again."""

from __future__ import annotations

from dataclasses import dataclass

from trtconv.rewrite.graph.index import Graph, Node

SWAPPED = [0, 2, 1]
CHANNELS_LAST, CHANNELS_FIRST = (0, 2, 3, 1), (0, 3, 1, 2)
UNARY = frozenset({"Erf", "Gelu", "HardSigmoid", "HardSwish", "LeakyRelu", "Relu", "Sigmoid", "Tanh"})
"""What computes element by element, in any layout."""


@dataclass(frozen=True)
class RowsAsImage:
    """`rows` [N, height * width, channels] enter; `nodes` are those from there to the rows that come out, in order."""

    conv: Node
    nodes: tuple[Node, ...]
    rows: str
    channels: int
    height: int
    width: int


def depthwise_on_rows(graph: Graph, result: str) -> RowsAsImage | None:
    """Transpose(Reshape(Conv(Reshape(Transpose(rows))))), the Conv one kernel to each channel, which keeps all sizes.

    None where a value is made in another way, or where sizes other than the batch's are not known.
    """
    out = graph.maker(result, "Transpose")
    flat = graph.maker(out.inputs[0], "Reshape") if out is not None else None
    conv = graph.maker(flat.inputs[0], "Conv") if flat is not None else None
    image = graph.maker(conv.inputs[0], "Reshape") if conv is not None else None
    swap = graph.maker(image.inputs[0], "Transpose") if image is not None else None
    if out is None or flat is None or conv is None or image is None or swap is None:
        return None
    dims = graph.dims(image.output)
    if dims is None or dims != graph.dims(conv.output) or len(dims) != 4:
        return None
    channels, height, width = (d if isinstance(d, int) else 0 for d in dims[1:])
    # The batch alone may move: with the other sizes as they were, it is what is left.
    whole = all((graph.dims(v) or ())[1:] == (channels, height * width) for v in (swap.output, flat.output))
    plain = all(list(n.attr("perm", ())) == SWAPPED for n in (out, swap))
    if not whole or not plain or not channels * height * width or conv.attr("group", 1) != channels:
        return None
    return RowsAsImage(conv, (swap, image, conv, flat, out), swap.inputs[0], channels, height, width)


def is_pixel_product(graph: Graph, node: Node) -> bool:
    """Whether a node is a convolution of single pixels of an image, by a constant weight that is not in groups."""
    if node.key != "Conv" or node.attr("group", 1) != 1 or not graph.is_constant(node.inputs[1]):
        return False
    weight = graph.dims(node.inputs[1])
    plain = not any(node.attr("pads", [0])) and set(node.attr("strides", [1])) == {1}
    return weight is not None and list(weight[2:]) == [1, 1] and plain
