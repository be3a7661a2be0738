"""The products before and after a depthwise convolution as convolutions too, so that the narrow tensors are transposed.

The perceptrons of PVTv2 and of Mix Transformers widen rows of tokens, lay them out as an image, convolve each channel,
and narrow them: two Transposes of the wide image, which TensorRT 8.6 carries out. PVTv2-B1 in FP16 at batch 8 took
1.352 ms on an H100, and 0.997 where the narrow rows are transposed; at batch 1 0.584, and 0.444.
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
from trtconv.rewrite.patterns.rows_as_image import SWAPPED, UNARY, depthwise_on_rows

LARGEST_WEIGHTS = 1 << 24
BINARY = frozenset({"Add", "Div", "Mul", "Sub"})


@dataclass(frozen=True)
class Chain:
    """From the first product to the last: `image` and `rows` are the Transpose and Reshape around the convolution."""

    x: str
    weight: Array
    bias: str
    conv: Node
    rows: str
    between: tuple[Node, ...]
    last: Node
    last_weight: Array
    nodes: tuple[Node, ...]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match MatMul(f(rows of Conv(image of MatMul(x, w) + b)), v), f element by element, the image wide."""
    last_weight = _matrix(graph, node)
    if last_weight is None:
        return NOT_THIS
    between, source = _between(graph, node.inputs[0])
    image = depthwise_on_rows(graph, source)
    if image is None:
        return NOT_THIS
    conv, nodes, wide = image.conv, image.nodes, image.rows
    add, bias = graph.maker(wide, "Add"), ""
    if add is not None:
        bias = next((i for i in add.inputs if graph.is_constant(i)), "")
        wide = next((i for i in add.inputs if i != bias), "") if bias else ""
    first = graph.maker(wide, "MatMul")
    weight = _matrix(graph, first) if first is not None else None
    if first is None or weight is None:
        return NOT_THIS
    width = weight.shape[1]
    if bias and graph.dims(bias) != (width,):
        return Skip("what is added to the first product is not one value for each column")
    if width <= weight.shape[0] or last_weight.shape[0] != width or width <= last_weight.shape[1]:
        return Skip("the image is not wider than the rows at both ends")
    matched = (first, *([add] if add is not None else []), *nodes, *between)
    inner = {n.name for n in (*matched, node)}
    if any(n.output in graph.outputs or any(u.name not in inner for u in graph.uses(n.output)) for n in matched):
        return Skip("what lies between the products is used elsewhere too")
    chain = Chain(first.inputs[0], weight, bias, conv, source, between, node, last_weight, (*matched, node))
    return Found(chain.nodes, partial(_build, graph=graph, chain=chain, height=image.height, width=image.width))


def _matrix(graph: Graph, product: Node) -> Array | None:
    if graph.rank(product.inputs[0]) != 3:
        return None
    weight = graph.constant(product.inputs[1], limit=LARGEST_WEIGHTS)
    return weight if weight is not None and weight.ndim == 2 else None


def _between(graph: Graph, name: str) -> tuple[tuple[Node, ...], str]:
    """The nodes that compute element by element from one Transpose, in order, and what that gives; "" for none."""
    nodes: dict[str, Node] = {}
    waiting, sources = [name], set()
    while waiting and len(nodes) < 16:
        value = waiting.pop()
        maker = graph.maker(value)
        if maker is None or maker.name in nodes:
            if maker is None:
                return (), ""
            continue
        constants = [i for i in maker.inputs if graph.is_constant(i)]
        if maker.key == "Transpose":
            sources.add(value)
        elif maker.key in UNARY and len(maker.inputs) == 1:
            nodes[maker.name] = maker
            waiting.append(maker.inputs[0])
        elif maker.key in BINARY and all(graph.scalar(i) is not None for i in constants):
            nodes[maker.name] = maker
            waiting += [i for i in maker.inputs if i not in constants]
        else:
            return (), ""
    if len(sources) != 1:
        return (), ""
    return tuple(sorted(nodes.values(), key=lambda n: n.order)), sources.pop()


def _build(g: Replacement, graph: Graph, chain: Chain, height: int, width: int) -> Value:
    first = np.ascontiguousarray(chain.weight.T)[:, :, None, None]
    narrow = g.reshape(g.transpose(chain.x, *SWAPPED), -1, first.shape[1], height, width)
    wide = g.op("Conv", narrow, g.const(first, "weight"), *([chain.bias] if chain.bias else []), kernel_shape=[1, 1])
    attributes = {a.name: chain.conv.attr(a.name) for a in chain.conv.proto.attribute}
    values: dict[str, Value] = {chain.rows: g.op("Conv", wide, *chain.conv.inputs[1:], **attributes)}
    for node in chain.between:
        own = node.attributes()
        inputs = [values[i] if i in values else _number(g, graph, i) for i in node.inputs]
        values[node.output] = g.op(node.op, *inputs, **own)
    last = np.ascontiguousarray(chain.last_weight.T)[:, :, None, None]
    y = g.op("Conv", values[chain.last.inputs[0]], g.const(last, "weight"), kernel_shape=[1, 1])
    return g.transpose(g.reshape(y, -1, last.shape[0], height * width), *SWAPPED)


def _number(g: Replacement, graph: Graph, name: str) -> Value:
    """A constant of one element, of a rank that does not widen the image."""
    array = graph.constant(name)
    return name if array is None or array.ndim <= 1 else g.const(array.reshape(()))


RULE = Rule(
    name="products-around-convolution",
    why="As convolutions of one pixel the products need no Transpose of the wide image, which TensorRT 8.6 makes.",
    ops=("MatMul",),
    find=find,
    needed=only_tensorrt_8,
    precisions=(FP16.name,),
    before="MatMul(Gelu(Transpose(Reshape(Conv(Reshape(Transpose(MatMul(x, w) + b)), k, group=M)))), v)",
    after="Transpose(Reshape(Conv(Gelu(Conv(Conv(Reshape(Transpose(x)), w[M,K,1,1], b), k, group=M)), v[L,M,1,1])))",
)
