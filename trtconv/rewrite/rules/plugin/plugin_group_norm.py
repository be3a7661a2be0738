"""A normalisation of whole images, and PoolFormer's mixing of neighbours, as one plugin node, channels last.

TensorRT 8.6 takes 18 to 25 us for each of the 24 normalisations of PoolFormer-S12 (FP16, batch 8, an H100), 10 for the
pooling and 7 for each change of layout around them. What the mixing adds, scale * (mean of neighbours - itself),
depends on neither the mean nor the shift of the normalisation. Convolutions of single pixels that read what is
normalised become products of its rows, which TrtconvLinear takes, with GELU and the residual.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from onnx import helper

from trtconv.plugins.described.group_norm import OP_TYPE
from trtconv.rewrite.engine.rule import NOT_THIS, Found, Rule, Skip, only_with_plugins
from trtconv.rewrite.graph.index import Array, Graph, Node
from trtconv.rewrite.graph.operators import Value
from trtconv.rewrite.graph.replacement import Replacement
from trtconv.rewrite.patterns.rows_as_image import CHANNELS_FIRST, CHANNELS_LAST, UNARY, is_pixel_product

FLOATS = (1, 10, 16)
# Elements of a kernel that is turned into a matrix here.
LARGEST_WEIGHT = 1 << 24
# As AveragePool has them where the pool keeps the size and counts what lies inside.
POOLING = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}


@dataclass(frozen=True)
class ImageNorm:
    """(x - mean) / deviation * scale + shift over [C, H, W], and its nodes, the last one last."""

    x: str
    scale: Array
    shift: Array
    epsilon: float
    nodes: tuple[Node, ...]


def find(graph: Graph, node: Node) -> Found | Skip:
    """Match x + (AveragePool(n) - n) * factors, n being x normalised, or one Conv1x1(f(Conv1x1(n))) or more."""
    mixing = _mixing(graph, node) if node.key == "Add" else None
    if mixing is not None:
        norm, factors, nodes = mixing
        products: tuple[Node, ...] = ()
    else:
        alone = _read(graph, node.output)
        if alone is None:
            return NOT_THIS
        norm, factors, products = alone, None, _products(graph, node)
        nodes = (*norm.nodes, *products)
        if not products:
            return Skip("what reads it is not one convolution of single pixels, with a weight at hand")
    if graph.dtype(norm.x) not in FLOATS:
        return Skip("the element type is not known")
    return Found(nodes, partial(_build, graph=graph, norm=norm, factors=factors, products=products))


def _products(graph: Graph, node: Node) -> tuple[Node, ...]:
    """The convolutions of single pixels that alone read a value, one behind the other, and what lies between them."""
    nodes: list[Node] = []
    last = 0
    while graph.used_once(node.output) and (users := graph.uses(node.output)):
        node = users[0]
        if is_pixel_product(graph, node) and graph.constant(node.inputs[1], LARGEST_WEIGHT) is not None:
            last = len(nodes) + 1
        elif not nodes or node.key not in UNARY:
            break
        nodes.append(node)
    return tuple(nodes[:last])


def _mixing(graph: Graph, node: Node) -> tuple[ImageNorm, Array, tuple[Node, ...]] | None:
    dims = graph.dims(node.output)
    if dims is None or len(dims) != 4 or not isinstance(dims[1], int):
        return None
    for value, x in (node.inputs[1::-1], node.inputs[:2]):
        factors, between = np.ones(dims[1]), [node]
        scaling = graph.maker(value, "Mul")
        operand = graph.operand(scaling) if scaling is not None and graph.used_once(value) else None
        if scaling is not None and operand is not None:
            vector = _by_channel(operand[1], dims[1])
            if vector is None:
                continue
            value, factors = operand[0], vector
            between.append(scaling)
        away = graph.maker(value, "Sub")
        pool = graph.maker(away.inputs[0], "AveragePool") if away is not None and graph.used_once(value) else None
        if away is None or pool is None or not _is_pooling(pool) or not graph.used_once(pool.output):
            continue
        norm = _read(graph, away.inputs[1])
        if norm is None or away.inputs[1] in graph.outputs or norm.x != x or pool.inputs[0] != away.inputs[1]:
            continue
        if {u.name for u in graph.uses(pool.inputs[0])} == {pool.name, away.name}:
            return norm, factors, (*norm.nodes, pool, away, *reversed(between))
    return None


def _is_pooling(pool: Node) -> bool:
    plain = all(set(pool.attr(name, [1])) == {1} for name in ("strides", "dilations"))
    flags = any(pool.attr(name, 0) for name in ("count_include_pad", "ceil_mode"))
    return plain and not flags and all(list(pool.attr(name, ())) == value for name, value in POOLING.items())


def _read(graph: Graph, value: str) -> ImageNorm | None:
    """The normalisation that gives a value of rank 4 whose sizes are known, with constant factors; None for none."""
    dims, node = graph.dims(value), graph.maker(value)
    if node is None or dims is None or len(dims) != 4 or None in dims or not isinstance(dims[1], int):
        return None
    if node.key == "GroupNormalization":
        return _one_group(graph, node, dims[1])
    scale, shift = np.ones(dims[1]), np.zeros(dims[1])
    nodes: list[Node] = []
    for key in ("Add", "Mul"):
        operand = graph.operand(node) if node.key == key else None
        if operand is None:
            continue
        vector = _by_channel(operand[1], dims[1])
        maker = graph.maker(operand[0])
        if vector is None or maker is None or not graph.used_once(operand[0]):
            return None
        scale, shift = (scale, vector) if key == "Add" else (vector, shift)
        nodes.append(node)
        node = maker
    flat = _flat_norm(graph, node)
    if flat is None or graph.dims(flat[0].inputs[0]) != dims:
        return None
    return ImageNorm(flat[0].inputs[0], scale, shift, float(flat[1].attr("epsilon", 1e-5)), (*flat, *reversed(nodes)))


def _by_channel(array: Array, channels: int) -> Array | None:
    """A constant beside [N, C, H, W] as one value for each channel, where it is that or a number."""
    if array.size == 1 and array.ndim <= 4:
        return np.full(channels, array.reshape(-1)[0])
    return array.reshape(-1) if array.shape in ((channels, 1, 1), (1, channels, 1, 1)) else None


def _one_group(graph: Graph, node: Node, channels: int) -> ImageNorm | None:
    vectors = [graph.constant(i) for i in node.inputs[1:3]]
    if node.attr("num_groups") != 1 or graph.dims(node.inputs[0]) != graph.dims(node.output):
        return None
    scale, shift = (None if v is None or v.size not in (1, channels) else v.reshape(-1) for v in vectors)
    if scale is None or shift is None:
        return None
    whole = np.ones(channels)
    return ImageNorm(node.inputs[0], scale * whole, shift * whole, float(node.attr("epsilon", 1e-5)), (node,))


def _flat_norm(graph: Graph, node: Node) -> tuple[Node, Node, Node] | None:
    """Reshape to [N, 1, the rest], InstanceNormalization without factors, and the Reshape back."""
    if node.key != "Reshape":
        return None
    norm = graph.maker(node.inputs[0], "InstanceNormalization")
    flat = graph.maker(norm.inputs[0], "Reshape") if norm is not None else None
    if norm is None or flat is None or not (graph.used_once(node.inputs[0]) and graph.used_once(norm.inputs[0])):
        return None
    dims, image = graph.dims(flat.output), graph.dims(flat.inputs[0])
    if dims is None or image is None or len(dims) != 3 or dims[1] != 1 or dims[0] != image[0]:
        return None
    plain = graph.scalar(norm.inputs[1]) == 1.0 and graph.scalar(norm.inputs[2]) == 0.0
    return (flat, norm, node) if plain else None


def _build(g: Replacement, graph: Graph, norm: ImageNorm, factors: Array | None, products: Sequence[Node]) -> Value:
    dtype = helper.tensor_dtype_to_np_dtype(graph.dtype(norm.x))
    scale = norm.scale if factors is None else norm.scale * factors
    y: Value = g.plugin(
        OP_TYPE,
        g.transpose(norm.x, *CHANNELS_LAST),
        g.const(scale.astype(dtype), "scale"),
        g.const(norm.shift.astype(dtype), "shift"),
        epsilon=norm.epsilon,
        mixed="no" if factors is None else "yes",
    )
    for node in products:
        weight = graph.constant(node.inputs[1], LARGEST_WEIGHT) if node.key == "Conv" else None
        if weight is None:
            y = g.op(node.op, y, **node.attributes())
            continue
        y = g.matmul(y, g.const(np.ascontiguousarray(weight[:, :, 0, 0].T), "weight"))
        y = g.add(y, node.inputs[2]) if node.input(2) else y
    return g.transpose(y, *CHANNELS_FIRST)


RULE = Rule(
    name="plugin-group-norm",
    why="The plugin reads an image once and stays channels last, where the Transposes between blocks cancel.",
    ops=("Add", "GroupNormalization", "Mul", "Reshape"),
    find=find,
    needed=only_with_plugins,
    before="n = GroupNormalization(x, num_groups=1); x + (AveragePool(n) - n) * s[C,1,1], or Conv(Gelu(Conv(n, w)), v)",
    after="Transpose(p, [0,3,1,2]), p = TrtconvGroupNorm(Transpose(x, [0,2,3,1]), ...) or MatMul(Gelu(MatMul(p)))",
    judged_as_float32=True,
    plugin=OP_TYPE,
)
