"""Random graphs of valid operators, whatever trtconv has rules for: types and shapes are those of ONNX's own inference.

A graph is a function of its seed. Each step takes values that are there, draws an operator and its attributes, and is
dropped again where the checker or the inference refuses it. Floats become integers only within a range, and integers
are divided by numbers that are not zero: elsewhere ONNX says nothing of the result.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper, shape_inference

OPSETS = (13, 17, 18, 20, 21)
INPUTS = "x:float32[N,4,6] i:int64[N,4,6]=-4:3 m:bool[N,4,6]"
SPACE = "N=1:2:4"
BIG = 2**63 - 1
FLOAT_OPS = (
    "Abs", "Neg", "Relu", "Sigmoid", "Tanh", "Floor", "Ceil", "Round", "Exp", "Sin", "Cos", "Erf", "Softplus",
    "Softsign", "Sign", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "LeakyRelu", "ThresholdedRelu", "Identity",
    "Dropout", "Atan", "Asinh", "Shrink", "Hardmax", "LpNormalization", "MeanVarianceNormalization",
)  # fmt: skip
NEWER = {"Mish": 18, "Gelu": 20}
REDUCED = (
    "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL1", "ReduceL2", "ReduceSumSquare", "ReduceLogSumExp",
)  # fmt: skip


@dataclass
class Value:
    """A tensor: its element type, and its dims, `N` or sizes."""

    name: str
    kind: int
    dims: tuple[Any, ...]


@dataclass
class Grown:
    """A graph that grows."""

    rng: random.Random
    opset: int
    nodes: list[Any] = field(default_factory=list)
    weights: list[Any] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    count: int = 0

    def name(self) -> str:
        self.count += 1
        return f"v{self.count}"

    def const(self, array: Any) -> str:
        """An initializer, or a Constant."""
        tensor = numpy_helper.from_array(np.asarray(array), self.name())
        if self.rng.random() < 0.3:
            self.nodes.append(helper.make_node("Constant", [], [tensor.name], value=tensor))
        else:
            self.weights.append(tensor)
        return tensor.name

    def ints(self, *values: int) -> str:
        return self.const(np.asarray(values, np.int64))

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, name=f"n_{names[0]}", **attributes))
        return names[0]

    def pick(self, *kinds: int, rank: int | None = None) -> Value:
        """One of the latest values of a type; raises IndexError when there is none."""
        fitting = [v for v in self.values if v.kind in kinds and (rank is None or len(v.dims) == rank)]
        return self.rng.choice(fitting[-6:])

    def axis(self, value: Value) -> int:
        rank = len(value.dims)
        return self.rng.randrange(-rank, rank)

    def model(self, outputs: list[Value]) -> Any:
        info = helper.make_tensor_value_info
        inputs = [info("x", T.FLOAT, ["N", 4, 6]), info("i", T.INT64, ["N", 4, 6]), info("m", T.BOOL, ["N", 4, 6])]
        results = [info(v.name, v.kind, v.dims) for v in outputs]
        graph = helper.make_graph(self.nodes, "g", inputs, results, self.weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)], ir_version=9)
        for key, text in (("trtconv.space", SPACE), ("trtconv.inputs", INPUTS)):
            model.metadata_props.add(key=key, value=text)
        return model


def random_model(seed: int, steps: int = 14) -> Any:
    """The model of a seed. Its outputs are its last value and some that are used inside."""
    rng = random.Random(seed)
    grown = Grown(rng, rng.choice(OPSETS))
    shape: tuple[Any, ...] = ("N", 4, 6)
    grown.values = [Value("x", T.FLOAT, shape), Value("i", T.INT64, shape), Value("m", T.BOOL, shape)]
    for _ in range(rng.randrange(2, steps)):
        nodes, weights = len(grown.nodes), len(grown.weights)
        try:
            name = rng.choice(STEPS)(grown)
            grown.values.append(_inferred(grown, name))
        except (IndexError, ValueError, TypeError, onnx.checker.ValidationError, shape_inference.InferenceError):
            del grown.nodes[nodes:], grown.weights[weights:]
    made = [v for v in grown.values if v.name not in ("x", "i", "m")]
    chosen = made[-1:] + [v for v in made[:-1] if rng.random() < 0.15]
    return grown.model(chosen) if made else random_model(seed + 1)


def _inferred(grown: Grown, name: str) -> Value:
    """The type of a value. Raises ValueError where the inference has none, or it is empty or large."""
    model = grown.model([])
    onnx.checker.check_model(model)
    inferred = shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
    info = next((v for v in inferred.graph.value_info if v.name == name), None)
    if info is None or not info.type.tensor_type.HasField("shape"):
        raise ValueError(name)
    dims = tuple(d.dim_param or d.dim_value for d in info.type.tensor_type.shape.dim)
    sizes = [2 if d == "N" else d for d in dims]
    if any(not isinstance(d, int) or d == 0 for d in sizes) or np.prod(sizes) > 4000 or len(sizes) > 5:
        raise ValueError(name)
    return Value(name, info.type.tensor_type.elem_type, dims)


def unary(g: Grown) -> str:
    op_type = g.rng.choice([*FLOAT_OPS, *(o for o, first in NEWER.items() if g.opset >= first)])
    return g.op(op_type, g.pick(T.FLOAT).name)


def binary(g: Grown) -> str:
    one = g.pick(T.FLOAT, T.INT64)
    other = g.pick(one.kind).name if g.rng.random() < 0.5 else _number(g, one)
    pair = g.rng.sample([one.name, other], 2)
    return g.op(g.rng.choice(["Add", "Sub", "Mul", "Max", "Min"]), *pair)


def _number(g: Grown, like: Value) -> str:
    if like.kind == T.INT64:
        return g.const(np.asarray(g.rng.choice([-2, -1, 0, 1, 2, 3]), np.int64))
    shape = g.rng.choice([(), (1,), (6,)])
    return g.const(np.full(shape, g.rng.choice([0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 1e-6, 255.0]), np.float32))


def division(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64)
    divisors = [-3, -2, -1, 1, 2, 3, 7]
    divisor = g.const(np.asarray(g.rng.choice(divisors), np.float32 if value.kind == T.FLOAT else np.int64))
    if g.rng.random() < 0.5:
        return g.op("Mod", value.name, divisor, fmod=int(value.kind == T.FLOAT or g.rng.random() < 0.3))
    return g.op("Div", value.name, divisor)


def clip(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64)
    low, high = (_number(g, value) if g.rng.random() < 0.8 else "" for _ in range(2))
    if any(len(t.dims) for t in g.weights if t.name in (low, high)):
        raise ValueError("a bound is a scalar")
    return g.op("Clip", value.name, low, high)


def cast(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64, T.BOOL, T.INT32, T.UINT8)
    to = g.rng.choice([T.FLOAT, T.INT64, T.BOOL, T.INT32, T.UINT8])
    name = value.name
    if value.kind != T.BOOL and to in (T.INT64, T.INT32, T.UINT8):
        dtype = helper.tensor_dtype_to_np_dtype(value.kind)
        name = g.op("Clip", name, g.const(np.asarray(0, dtype)), g.const(np.asarray(200, dtype)))
    return g.op("Cast", name, to=to)


def compare(g: Grown) -> str:
    one = g.pick(T.FLOAT, T.INT64)
    return g.op(g.rng.choice(["Greater", "Less", "Equal", "GreaterOrEqual", "LessOrEqual"]), one.name, _number(g, one))


def logic(g: Grown) -> str:
    one, other = g.pick(T.BOOL).name, g.pick(T.BOOL).name
    return g.op("Not", one) if g.rng.random() < 0.4 else g.op(g.rng.choice(["And", "Or", "Xor"]), one, other)


def where(g: Grown) -> str:
    one = g.pick(T.FLOAT, T.INT64)
    return g.op("Where", g.pick(T.BOOL).name, one.name, g.rng.choice([g.pick(one.kind).name, _number(g, one)]))


def reduce(g: Grown) -> str:
    value, op_type = g.pick(T.FLOAT), g.rng.choice(REDUCED)
    rank = len(value.dims)
    axes = [a - rank * g.rng.randrange(2) for a in g.rng.sample(range(rank), g.rng.randrange(1, rank + 1))]
    keep = g.rng.randrange(2)
    if g.opset >= (13 if op_type == "ReduceSum" else 18):
        return g.op(op_type, value.name, g.ints(*axes), keepdims=keep)
    return g.op(op_type, value.name, axes=axes, keepdims=keep)


def chosen(g: Grown) -> str:
    value = g.pick(T.FLOAT)
    axis, keep = g.axis(value), g.rng.randrange(2)
    if g.rng.random() < 0.5:
        return g.op(g.rng.choice(["ArgMax", "ArgMin"]), value.name, axis=axis, keepdims=keep)
    return g.op("TopK", value.name, g.ints(1), outputs=2, axis=axis, largest=g.rng.randrange(2))


def along(g: Grown) -> str:
    value = g.pick(T.FLOAT)
    if g.rng.random() < 0.6:
        return g.op(g.rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), value.name, axis=g.axis(value))
    attributes = {"exclusive": g.rng.randrange(2), "reverse": g.rng.randrange(2)}
    return g.op("CumSum", value.name, g.const(np.asarray(g.axis(value), np.int64)), **attributes)


def layout(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64, T.BOOL)
    rank = len(value.dims)
    kind = g.rng.randrange(4)
    if kind == 0:
        return g.op("Transpose", value.name, perm=g.rng.sample(range(rank), rank))
    if kind == 1:
        return g.op("Unsqueeze", value.name, g.ints(g.rng.randrange(-rank - 1, rank + 1)))
    if kind == 2:
        return g.op("Flatten", value.name, axis=g.axis(value))
    return g.op("Squeeze", value.name, g.ints(g.rng.choice([a for a, d in enumerate(value.dims) if d == 1])))


def part(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64)
    axis, step = g.axis(value), g.rng.choice([1, 2, -1, -2])
    ends = (g.rng.choice([0, 1, -3, -BIG]), g.rng.choice([3, -1, BIG, 99]))
    start, stop = ends if step > 0 else (g.rng.choice([-1, 4, BIG]), g.rng.choice([0, -5, -BIG]))
    return g.op("Slice", value.name, g.ints(start), g.ints(stop), g.ints(axis), g.ints(step))


def gather(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64)
    axis = g.rng.choice([a for a, d in enumerate(value.dims) if isinstance(d, int)])
    size = value.dims[axis]
    if g.rng.random() < 0.5 or value.dims != ("N", 4, 6):
        return g.op("Gather", value.name, g.ints(*(g.rng.randrange(-size, size) for _ in range(3))), axis=axis)
    if g.rng.random() < 0.5:
        return g.op("GatherElements", value.name, "i", axis=1)
    reduction = g.rng.choice(["none", "add", "mul"] if g.opset < 18 else ["add", "mul", "max", "min"])
    updates = g.pick(value.kind, rank=3)
    if updates.dims != value.dims or (reduction == "none" and g.opset < 16):
        raise ValueError("the updates have another shape")
    return g.op("ScatterElements", value.name, "i", updates.name, axis=g.rng.choice([1, 2]), reduction=reduction)


def joined(g: Grown) -> str:
    value = g.pick(T.FLOAT, T.INT64)
    kind = g.rng.randrange(3)
    axis = g.axis(value)
    if kind == 0:
        return g.op("Concat", value.name, g.pick(value.kind, rank=len(value.dims)).name, axis=axis)
    if kind == 1:
        return g.op("Tile", value.name, g.ints(*(g.rng.choice([1, 1, 2]) for _ in value.dims)))
    shape = [1 if g.rng.random() < 0.5 or not isinstance(d, int) else d for d in value.dims]
    return g.op("Expand", value.name, g.ints(g.rng.choice([1, 2]), *shape))


def padded(g: Grown) -> str:
    value = g.pick(T.FLOAT, rank=3)
    mode = g.rng.choice(["constant", "reflect", "edge", *(["wrap"] if g.opset >= 19 else [])])
    low = -1 if mode == "constant" else 0
    pads = [0, g.rng.randrange(low, 3), g.rng.randrange(low, 3), 0, g.rng.randrange(low, 2), g.rng.randrange(low, 2)]
    return g.op("Pad", value.name, g.ints(*pads), _number(g, Value("", T.FLOAT, ())), mode=mode)


def image(g: Grown) -> str:
    value = g.pick(T.FLOAT, rank=3)
    kind = g.rng.randrange(5)
    window = {
        "kernel_shape": [g.rng.randrange(1, 4)],
        "strides": [g.rng.randrange(1, 3)],
        "ceil_mode": g.rng.randrange(2),
    }
    if kind == 0:
        return g.op("MaxPool", value.name, **window)
    if kind == 1:
        return g.op("AveragePool", value.name, count_include_pad=g.rng.randrange(2), **window)
    channels = value.dims[1]
    if kind == 2:
        scale, bias = (np.linspace(-1, 1, channels, dtype=np.float32) for _ in range(2))
        return g.op("InstanceNormalization", value.name, g.const(scale), g.const(bias))
    if kind == 3:
        weight = np.linspace(-1, 1, 2 * channels * 2, dtype=np.float32).reshape(2, channels, 2)
        return g.op("Conv", value.name, g.const(weight), auto_pad=g.rng.choice(["NOTSET", "SAME_UPPER", "SAME_LOWER"]))
    scales = g.const(np.asarray([1, 1, g.rng.choice([0.5, 1.5, 2.0, 1.7])], np.float32))
    modes = {
        "mode": g.rng.choice(["nearest", "linear"]),
        "coordinate_transformation_mode": g.rng.choice(["half_pixel", "asymmetric", "align_corners"]),
    }
    if modes["mode"] == "nearest":
        modes["nearest_mode"] = g.rng.choice(["floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    return g.op("Resize", value.name, "", scales, **modes)


def product(g: Grown) -> str:
    value = g.pick(T.FLOAT)
    width = value.dims[-1]
    weight = np.linspace(-1, 1, width * 3, dtype=np.float32).reshape(width, 3)
    if g.rng.random() < 0.4 and len(value.dims) == 3:
        equation = g.rng.choice(["nab,bc->nac", "nab,bc->cna", "nab,bc", "...b,bc->...c"])
        return g.op("Einsum", value.name, g.const(weight), equation=equation)
    return g.op("MatMul", value.name, g.const(weight))


def other(g: Grown) -> str:
    value = g.pick(T.FLOAT)
    kind = g.rng.randrange(4)
    if kind == 0 and g.opset >= 14:
        return g.op(
            "Trilu", value.name, g.const(np.asarray(g.rng.randrange(-3, 4), np.int64)), upper=g.rng.randrange(2)
        )
    if kind == 1 and g.opset >= 17:
        return g.op("LayerNormalization", value.name, g.const(np.ones(value.dims[-1], np.float32)), axis=-1)
    if kind == 2:
        scale = np.float32(g.rng.choice([0.5, 0.1, 1.0]))
        zero = np.asarray(g.rng.randrange(-3, 4), np.int8)
        quantised = g.op("QuantizeLinear", value.name, g.const(scale), g.const(zero))
        return g.op("DequantizeLinear", quantised, g.const(scale), g.const(zero))
    return g.op("Pow", g.op("Abs", value.name), g.const(np.float32(g.rng.choice([0.5, 2.0, 3.0, 0.0, 1.0]))))


STEPS: tuple[Callable[[Grown], str], ...] = (
    unary, unary, binary, binary, division, clip, cast, compare, logic, where, reduce, chosen, along, layout, layout,
    part, gather, joined, padded, image, image, product, other,
)  # fmt: skip
