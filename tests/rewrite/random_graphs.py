"""Random ONNX graphs that are valid by construction, for rewriting what nobody thought of.

Values are images [N,C,H,W], vectors of their sizes and scalars. The op types are those that rules look at and those
that stand around them: norms in several spellings, chains of Identity and Cast, arithmetic on constants, on shapes and
on values that merely have the shape of a constant, dead nodes, duplicate constants, bodies of If that capture values.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

CHANNELS = 4
SPACE = "N=1:2:3 H=6:9:17 W=7:10:19"
UNARY = ("Relu", "Sigmoid", "Tanh", "Abs", "Neg", "Identity", "Dropout", "Softplus", "Mish", "HardSwish")
BINARY = ("Add", "Sub", "Mul", "Max", "Min")


@dataclass
class RandomGraph:
    """Grows a graph. `images` are the values so far that have the shape of the input."""

    rng: random.Random
    opset: int
    prefix: str = ""
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)
    images: list[str] = field(default_factory=list)
    count: int = 0

    def name(self, what: str) -> str:
        self.count += 1
        return f"{self.prefix}{what}_{self.count}"

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: object) -> str:
        name = self.name(op_type)
        result = [name, *(f"{name}_{i}" for i in range(1, outputs))]
        self.nodes.append(helper.make_node(op_type, list(inputs), result, name=f"n_{name}", **attributes))
        return name

    def const(self, array: object, node: bool | None = None) -> str:
        """A constant as initializer or as node; often one that is there already under another name."""
        tensor = numpy_helper.from_array(np.asarray(array), self.name("const"))
        if self.rng.random() < 0.3 if node is None else node:
            return self.op("Constant", value=tensor)
        self.constants.append(tensor)
        return tensor.name

    def floats(self) -> str:
        """A constant that broadcasts to an image."""
        shape = self.rng.choice([(), (1,), (1, CHANNELS, 1, 1), (CHANNELS, 1, 1)])
        value = self.rng.choice([0.0, 1.0, 2.0, 0.5, 1e-6, None])
        if value is None:
            value = np.random.default_rng(self.rng.randrange(1000)).uniform(0.5, 1.5, shape)
        return self.const(np.broadcast_to(np.float32(value), shape).astype(np.float32).copy())

    def pick(self) -> str:
        return self.rng.choice(self.images[-6:])

    def ints(self, *values: int) -> str:
        return self.const(np.asarray(values, np.int64))

    def reduce(self, op_type: str, value: str, axes: list[int]) -> str:
        if self.opset >= (13 if op_type == "ReduceSum" else 18):
            return self.op(op_type, value, self.ints(*axes), keepdims=1)
        return self.op(op_type, value, axes=axes, keepdims=1)

    def grow(self) -> None:
        """Put one more construct in, whose result is an image."""
        self.images.append(self.rng.choice(STEPS)(self))


def unary(g: RandomGraph) -> str:
    op_type = g.rng.choice([u for u in UNARY if u != "Mish" or g.opset >= 18])
    return g.op(op_type, g.pick())


def binary(g: RandomGraph) -> str:
    left, right = g.pick(), g.rng.choice([g.pick(), g.floats()])
    if g.rng.random() < 0.5:
        left, right = right, left
    return g.op(g.rng.choice(BINARY), left, right)


def divided(g: RandomGraph) -> str:
    """A division that is not a norm, but whose parts look like one."""
    return g.op("Div", g.pick(), g.op("Add", g.op("Abs", g.pick()), g.const(np.float32(0.5))))


def norm(g: RandomGraph) -> str:
    """x / norm(x), in one of its spellings, with the squares of x or of something that has its shape."""
    x = g.pick()
    base = x if g.rng.random() < 0.8 else g.pick()
    axes = g.rng.choice([[1], [-1], [2, 3], [1, 2, 3]])
    kind = g.rng.randrange(4)
    if kind == 0:
        total = g.reduce("ReduceSum", g.op("Mul", base, base), axes)
    elif kind == 1:
        total = g.reduce("ReduceSum", g.op("Pow", base, g.const(np.float32(2))), axes)
    elif kind == 2:
        total = g.reduce("ReduceSumSquare", base, axes)
    else:
        length = g.reduce("ReduceL2", base, axes)
        total = g.op("Mul", length, length)
    if g.rng.random() < 0.5:
        total = g.op("Add", *g.rng.sample([total, g.const(np.float32(1e-3))], 2))
    length = g.op("Sqrt", total)
    if g.rng.random() < 0.7:
        bound = g.const(np.float32(g.rng.choice([1e-2, 0.1])))
        length = g.op(g.rng.choice(["Add", "Max"]), *g.rng.sample([length, bound], 2))
    else:
        length = g.op("Max", length, g.const(np.float32(0.05)))
    if g.rng.random() < 0.3:
        return g.op("Mul", *g.rng.sample([x, g.op("Reciprocal", length)], 2))
    return g.op("Div", x, length)


def layer_norm(g: RandomGraph) -> str:
    """(x - mean) / sqrt(var + eps) by hand."""
    x, axes = g.pick(), g.rng.choice([[1], [2, 3], [-1]])
    centred = g.op("Sub", x, g.reduce("ReduceMean", x, axes))
    variance = g.reduce("ReduceMean", g.op("Mul", centred, centred), axes)
    return g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.const(np.float32(1e-2)))))


def transposed(g: RandomGraph) -> str:
    first = [0, *g.rng.sample([1, 2, 3], 3)]
    middle = g.op("Relu", g.op("Transpose", g.pick(), perm=first))
    return g.op("Transpose", middle, perm=[first.index(i) for i in range(4)])


def casts(g: RandomGraph) -> str:
    value = g.pick()
    for _ in range(g.rng.randrange(1, 4)):
        value = g.op("Cast", value, to=TensorProto.FLOAT)
    if g.rng.random() < 0.3:
        value = g.op("Cast", g.op("Cast", value, to=TensorProto.DOUBLE), to=TensorProto.FLOAT)
    return value


def folded(g: RandomGraph) -> str:
    """Arithmetic on constants only, several nodes deep."""
    value = g.const(np.float32(g.rng.choice([0.25, 1.5, 2.0])))
    for _ in range(g.rng.randrange(1, 6)):
        value = g.op(g.rng.choice(["Add", "Mul", "Max"]), *g.rng.sample([value, g.const(np.float32(1.25))], 2))
    return g.op("Mul", g.pick(), value)


def by_shape(g: RandomGraph) -> str:
    """Flatten and put back, with sizes read from a value that has the same shape."""
    x = g.pick()
    shape = g.op("Shape", g.pick())
    batch = g.op("Gather", shape, g.ints(0), axis=0)
    rest = g.op("Gather", shape, g.ints(2, 3), axis=0)
    area = g.op("ReduceProd", rest, axes=[0], keepdims=1) if g.opset < 18 else g.op("ReduceProd", rest, g.ints(0))
    flat = g.op("Reshape", x, g.op("Concat", batch, g.ints(CHANNELS), area, axis=0))
    return g.op("Reshape", g.op("Softmax", flat, axis=g.rng.choice([1, 2])), shape)


def expanded(g: RandomGraph) -> str:
    """A constant expanded to the shape of an image before it is used."""
    x = g.pick()
    like = g.rng.choice([x, g.pick()])
    return g.op("Add", x, g.op("Expand", g.floats(), g.op("Shape", like)))


def resized(g: RandomGraph) -> str:
    """Up by two and pooled back: sizes come from another tensor's shape."""
    x = g.pick()
    shape = g.op("Shape", x)
    size = g.op("Mul", g.op("Slice", shape, g.ints(2), g.ints(4)), g.ints(2))
    whole = g.op("Concat", g.op("Slice", shape, g.ints(0), g.ints(2)), size, axis=0)
    mode = g.rng.choice(["nearest", "linear"])
    up = g.op("Resize", x, "", "", whole, mode=mode, coordinate_transformation_mode="asymmetric")
    return g.op(g.rng.choice(["MaxPool", "AveragePool"]), up, kernel_shape=[2, 2], strides=[2, 2])


def masked(g: RandomGraph) -> str:
    x = g.pick()
    mask = g.op("Greater", *g.rng.sample([g.pick(), g.const(np.float32(0.1))], 2))
    return g.op("Where", mask, *g.rng.sample([x, g.rng.choice([g.pick(), g.const(np.float32(0.0))])], 2))


def dead(g: RandomGraph) -> str:
    """A value that somebody uses, beside nodes that nobody does, which stand on the same pattern."""
    x = g.pick()
    for _ in range(g.rng.randrange(1, 3)):
        g.op("Sqrt", g.op("Abs", x))
    return g.op("Relu", x)


def branch(g: RandomGraph) -> str:
    """If on a size: both bodies capture values from around and have constants of their own."""
    first = g.op("Gather", g.op("Shape", g.pick()), g.ints(2), axis=0)
    held = g.op("Squeeze", g.op("Greater", first, g.ints(8)), g.ints(0))
    bodies = []
    for side in ("then", "else"):
        inner = RandomGraph(g.rng, g.opset, f"{g.prefix}{side}{g.count}_", images=[g.pick(), g.pick()])
        for _ in range(g.rng.randrange(1, 4)):
            inner.grow()
        out = inner.op("Identity", inner.images[-1])
        info = helper.make_tensor_value_info(out, TensorProto.FLOAT, [None] * 4)
        bodies.append(helper.make_graph(inner.nodes, side, [], [info], inner.constants))
    return g.op("If", held, then_branch=bodies[0], else_branch=bodies[1])


def split(g: RandomGraph) -> str:
    """Take the channels apart and put them together again, in another order or the same."""
    whole, half = g.pick(), CHANNELS // 2
    more = {"num_outputs": 2} if g.opset >= 18 else {}
    first = g.op("Split", whole, outputs=2, axis=1, **more)
    parts = [first, f"{first}_1"]
    if g.rng.random() < 0.5:
        parts = [
            g.op("Slice", whole, g.ints(0), g.ints(half), g.ints(1)),
            g.op("Slice", whole, g.ints(half), g.ints(1 << 40), g.ints(1)),
        ]
    if g.rng.random() < 0.5:
        parts[0] = g.op("Relu", parts[0])
    return g.op("Concat", *g.rng.sample(parts, 2), axis=1)


def gathered(g: RandomGraph) -> str:
    """Channels by index, negative ones among them."""
    order = g.rng.sample(range(CHANNELS), CHANNELS)
    return g.op("Gather", g.pick(), g.ints(*(c - CHANNELS * g.rng.randrange(2) for c in order)), axis=1)


def padded(g: RandomGraph) -> str:
    """Pad, then a window that takes the border away again."""
    mode = g.rng.choice(["constant", "reflect", "edge"])
    padded_value = g.op("Pad", g.pick(), g.ints(0, 0, 1, 1, 0, 0, 1, 1), mode=mode)
    kind = g.rng.choice(["MaxPool", "AveragePool"])
    return g.op(kind, padded_value, kernel_shape=[3, 3], strides=[1, 1])


def pooled(g: RandomGraph) -> str:
    """A whole axis or both, broadcast back by an addition."""
    x = g.pick()
    kind = g.rng.randrange(3)
    if kind == 0:
        part = g.op(g.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), x)
    elif kind == 1:
        part = g.reduce(g.rng.choice(["ReduceMean", "ReduceMax", "ReduceSum"]), x, g.rng.choice([[2], [3], [-1, -2]]))
    else:
        part = g.op("ReduceMax", g.op("Transpose", x, perm=[0, 1, 3, 2]), keepdims=1, **_axes(g, [3]))
    return g.op("Mul", x, g.op("Sigmoid", part))


def _axes(g: RandomGraph, axes: list[int]) -> dict[str, object]:
    return {"axes": axes} if g.opset < 18 else {}


def normalized(g: RandomGraph) -> str:
    """The norms that ONNX has as operators."""
    x, kind = g.pick(), g.rng.randrange(3)
    scale, bias = (g.const(np.linspace(0.5, 1.5, CHANNELS).astype(np.float32)) for _ in range(2))
    if kind == 0:
        return g.op("InstanceNormalization", x, scale, bias, epsilon=1e-2)
    if kind == 1:
        moved = g.op("Transpose", x, perm=[0, 2, 3, 1])
        moved = g.op("LayerNormalization", moved, scale, bias, axis=-1, epsilon=1e-2)
        return g.op("Transpose", moved, perm=[0, 3, 1, 2])
    return g.op("LpNormalization", g.op("Add", x, g.const(np.float32(0.1))), axis=g.rng.choice([1, -1]), p=2)


def convolved(g: RandomGraph) -> str:
    weight = np.random.default_rng(g.rng.randrange(1000)).normal(0, 0.3, (CHANNELS, CHANNELS, 3, 3))
    return g.op("Conv", g.pick(), g.const(weight.astype(np.float32), node=False), pads=[1, 1, 1, 1])


def clipped(g: RandomGraph) -> str:
    low, high = g.const(np.float32(-0.5)), g.const(np.float32(0.75))
    return g.op("Clip", g.pick(), *g.rng.choice([(low, high), (low, ""), ("", high), (low,)]))


def unshuffled(g: RandomGraph) -> str:
    """Channels into pixels and back, written as reshapes and as operators."""
    x = g.pick()
    if g.rng.random() < 0.5:
        return g.op("SpaceToDepth", g.op("DepthToSpace", x, blocksize=2, mode="CRD"), blocksize=2)
    shape = g.op("Shape", x)
    size = [g.op("Gather", shape, g.ints(axis), axis=0) for axis in (0, 2, 3)]
    wide = g.op("Reshape", x, g.op("Concat", size[0], g.ints(2, CHANNELS // 2), size[1], size[2], axis=0))
    return g.op("Reshape", g.op("Transpose", wide, perm=[0, 2, 1, 3, 4]), shape)


def gelu(g: RandomGraph) -> str:
    """x * Phi(x), with its factors in some order."""
    x = g.pick()
    error = g.op("Erf", g.op("Div", x, g.const(np.float32(2**0.5))))
    share = g.op("Mul", *g.rng.sample([g.op("Add", *g.rng.sample([error, g.const(np.float32(1))], 2)), x], 2))
    return g.op("Mul", *g.rng.sample([share, g.const(np.float32(0.5))], 2))


def counted(g: RandomGraph) -> str:
    """A running sum along an axis, scaled down so that it stays small."""
    total = g.op("CumSum", g.op("Tanh", g.pick()), g.const(np.asarray(g.rng.choice([2, 3, -1]), np.int64)))
    return g.op("Mul", total, g.const(np.float32(0.1)))


def contracted(g: RandomGraph) -> str:
    weight = g.const(
        np.random.default_rng(g.rng.randrange(1000)).normal(0, 0.5, (CHANNELS, CHANNELS)).astype(np.float32)
    )
    equation = g.rng.choice(["nchw,cd->ndhw", "...chw,cd->...dhw"])
    return g.op("Einsum", g.pick(), weight, equation=equation)


def looped(g: RandomGraph) -> str:
    """Three turns that add something captured; the body has a pattern for rules in it."""
    start, held = g.pick(), g.pick()
    p = f"{g.prefix}loop{g.count}_"
    inner = RandomGraph(g.rng, g.opset, p, images=[f"{p}state", held])
    for _ in range(g.rng.randrange(1, 3)):
        inner.grow()
    result = inner.op("Tanh", inner.images[-1])
    going = inner.op("Identity", f"{p}cond")
    body = helper.make_graph(
        inner.nodes,
        "body",
        [
            helper.make_tensor_value_info(f"{p}i", TensorProto.INT64, []),
            helper.make_tensor_value_info(f"{p}cond", TensorProto.BOOL, []),
            helper.make_tensor_value_info(f"{p}state", TensorProto.FLOAT, [None] * 4),
        ],
        [
            helper.make_tensor_value_info(going, TensorProto.BOOL, []),
            helper.make_tensor_value_info(result, TensorProto.FLOAT, [None] * 4),
        ],
        inner.constants,
    )
    turns, true = g.const(np.asarray(3, np.int64)), g.const(np.asarray(True))
    return g.op("Loop", turns, true, start, body=body)


STEPS = (
    unary, unary, binary, binary, divided, norm, norm, layer_norm, transposed, casts, folded, by_shape, expanded,
    resized, masked, dead, branch, split, gathered, padded, pooled, normalized, convolved, clipped, unshuffled, gelu,
    counted, contracted, looped,
)  # fmt: skip
