"""Small FP32 graphs in ONNX's text form, with inputs, for the tests of typing a graph."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.half_emulation import emulate_halves, has_halves


def run(model: onnx.ModelProto, feed) -> dict[str, np.ndarray]:
    honest = emulate_halves(model) if has_halves(model) else model
    return OnnxRuntimeRunner(honest.SerializeToString(), threads=1)(feed)


def error(expected: np.ndarray, actual: np.ndarray) -> float:
    assert np.array_equal(np.isfinite(expected), np.isfinite(actual)), "NaN or infinity where there was none"
    finite = np.isfinite(expected)
    scale = max(float(np.abs(expected[finite]).max(initial=0.0)), 1e-30)
    return float(np.abs(expected[finite].astype(np.float64) - actual[finite]).max(initial=0.0)) / scale


@dataclass(frozen=True)
class Net:
    """A graph, its weights and one feed. `builds` is False where TensorRT-RTX refuses the FP32 graph already."""

    name: str
    inputs: str
    outputs: str
    body: str
    feed: Mapping[str, Any]
    weights: Mapping[str, Any] = field(default_factory=dict)
    opset: int = 17
    builds: bool = True

    def __str__(self) -> str:
        return self.name

    def model(self) -> onnx.ModelProto:
        model = parser.parse_model(
            f'<ir_version: 8, opset_import: ["" : {self.opset}]>\n'
            f"g ({self.inputs}) => ({self.outputs}) {{ {self.body} }}"
        )
        for name, array in self.weights.items():
            model.graph.initializer.append(numpy_helper.from_array(np.asarray(array), name))
        for number, node in enumerate(model.graph.node):
            node.name = f"n{number}_{node.op_type}"
        return model


def normal(*shape: int, scale: float = 1.0, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed + sum(shape)).standard_normal(shape) * scale).astype(np.float32)


def f32(value: Any) -> np.ndarray:
    return np.asarray(value, np.float32)


def i64(value: Any) -> np.ndarray:
    return np.asarray(value, np.int64)


def _l2_input() -> np.ndarray:
    x = normal(1, 512, 2, 2, scale=30)
    x[:, :, 0, 0] = 0
    return x


CONV = Net(
    "conv-bn-relu", "float[N,3,H,W] x", "float[N,4,H,W] y",
    "c = Conv<pads=[1,1,1,1]>(x, w, b)\n n = BatchNormalization(c, s, o, mu, v)\n y = Relu(n)",
    {"x": normal(2, 3, 8, 8)},
    {"w": normal(4, 3, 3, 3), "b": normal(4), "s": normal(4, seed=1), "o": normal(4, seed=2), "mu": normal(4, seed=3),
     "v": np.abs(normal(4, seed=4))},
)  # fmt: skip
L2NORM = Net(
    "l2norm",
    "float[1,512,2,2] x",
    "float[1,512,2,2] y",
    "p = Pow(x, two)\n s = ReduceSum(p, ax)\n q = Sqrt(s)\n e = Add(q, eps)\n d = Div(x, e)\n m = Mul(d, g)\n"
    " y = Conv(m, w)",
    {"x": _l2_input()},
    {"two": f32(2), "ax": i64([1]), "eps": f32(1e-10), "g": normal(512, 1, 1), "w": normal(512, 512, 1, 1, scale=0.04)},
)
ATTENTION = Net(
    "layernorm-attention", "float[N,T,16] x, int64[N,T] mask", "float[N,T,16] y",
    """
    mean = ReduceMean<axes=[-1]>(x)
    d = Sub(x, mean)
    p = Pow(d, two)
    v = ReduceMean<axes=[-1]>(p)
    ve = Add(v, eps)
    sd = Sqrt(ve)
    n = Div(d, sd)
    ng = Mul(n, g)
    h = Add(ng, bt)
    q = MatMul(h, wq)
    k = MatMul(h, wk)
    vv = MatMul(h, wv)
    kt = Transpose<perm=[0,2,1]>(k)
    sc = MatMul(q, kt)
    shape = Shape(x)
    dim = Gather(shape, i2)
    df = Cast<to=1>(dim)
    sq = Sqrt(df)
    scaled = Div(sc, sq)
    mf = Cast<to=1>(mask)
    inv = Sub(one, mf)
    big = Mul(inv, lowest)
    mu = Unsqueeze(big, ax1)
    ms = Add(scaled, mu)
    a = Softmax(ms)
    o = MatMul(a, vv)
    y = Add(o, x)
    """,
    {"x": normal(2, 5, 16), "mask": i64([[1, 1, 1, 0, 0], [0, 0, 0, 0, 0]])},
    {"two": f32(2), "eps": f32(1e-5), "g": normal(16), "bt": normal(16, seed=1), "wq": normal(16, 16, scale=0.3),
     "wk": normal(16, 16, scale=0.3, seed=1), "wv": normal(16, 16, scale=0.3, seed=2), "i2": i64(2), "one": f32(1),
     "lowest": f32(np.finfo(np.float32).min), "ax1": i64([1])},
)  # fmt: skip
RESIZE = Net(
    "resize",
    "float[N,3,H,W] x",
    "float[N,4,h,w] y",
    """
    c = Conv<pads=[1,1,1,1]>(x, w)
    size = Shape<start=2>(x)
    f = Cast<to=1>(size)
    scaled = Mul(f, factor)
    fl = Floor(scaled)
    wanted = Cast<to=7>(fl)
    nc = Shape<end=2>(c)
    full = Concat<axis=0>(nc, wanted)
    r = Resize<mode="linear">(c, , , full)
    y = Resize<mode="nearest">(r, , scales)
    """,
    {"x": normal(1, 3, 9, 7)},
    {"w": normal(4, 3, 3, 3), "factor": f32(1.5), "scales": f32([1, 1, 2, 2])},
)
IF = Net(
    "if",
    "float[2,4] x, bool c",
    "float[2,4] y",
    """
    h = MatMul(x, w)
    r = If(c) <then_branch = t () => (float[2,4] a) { e = Exp(h)
     a = Add(e, h) }, else_branch = e () => (float[2,4] b) { b = Mul(h, w2) }>
    y = Add(r, h)
    """,
    {"x": normal(2, 4), "c": np.array(True)},
    {"w": normal(4, 4, scale=0.5), "w2": normal(4)},
)
LOOP = Net(
    "loop",
    "float[2,4] x",
    "float[2,4] y, float[3,2,4] z",
    """
    n = Constant<value = int64 {3}>()
    t = Constant<value = bool {1}>()
    y, z = Loop(n, t, x) <body = b (int64 i, bool c, float[2,4] s) => (bool c2, float[2,4] s2, float[2,4] o) {
     c2 = Identity(c)
     h = MatMul(s, w)
     s2 = Tanh(h)
     o = Relu(h) }>
    """,
    {"x": normal(2, 4)},
    {"w": normal(4, 4)},
)
TRANSPOSED = Net(
    "conv-transpose",
    "float[1,3,5,5] x",
    "float[1,4,11,11] y",
    "c = ConvTranspose<strides=[2,2]>(x, w, b)\n y = LeakyRelu<alpha=0.1>(c)",
    {"x": normal(1, 3, 5, 5)},
    {"w": normal(3, 4, 3, 3), "b": normal(4)},
)
INSTANCE = Net(
    "instance-norm",
    "float[1,3,5,5] x",
    "float[1,3,5,5] y",
    "c = InstanceNormalization(x, s, b)\n y = Relu(c)",
    {"x": normal(1, 3, 5, 5, scale=300)},
    {"s": normal(3), "b": normal(3, seed=1)},
)
LSTM = Net(
    "lstm",
    "float[T,2,3] x",
    "float[T,1,2,4] y",
    "z, h, c = LSTM<hidden_size=4>(x, w, r, b, , h0, h0)\n y = Sigmoid(z)",
    {"x": normal(5, 2, 3)},
    {"w": normal(1, 16, 3), "r": normal(1, 16, 4), "b": normal(1, 32), "h0": normal(1, 2, 4)},
)
EMBEDDING = Net(
    "embedding",
    "int64[N,T] ids",
    "float[N,T,4] y, int64[N,T] best",
    "e = Gather(table, ids)\n y = MatMul(e, w)\n best = ArgMax<axis=-1, keepdims=0>(e)",
    {"ids": np.random.default_rng(0).integers(0, 100, (2, 5))},
    {"table": normal(100, 4), "w": normal(4, 4)},
)
EINSUM = Net(
    "einsum",
    "float[2,3,4] x",
    "float[2,3,5] y",
    'y = Einsum<equation="bij,jk->bik">(x, w)',
    {"x": normal(2, 3, 4)},
    {"w": normal(4, 5)},
)
MASK_INF = Net(
    "mask-infinity",
    "float[2,4,4] x, bool[2,4,4] m",
    "float[2,4,4] y",
    "w = Where(m, x, low)\n y = Softmax(w)",
    {"x": normal(2, 4, 4), "m": np.eye(4, dtype=bool)[None].repeat(2, 0)},
    {"low": f32(-np.inf)},
)
MASK_LOWEST = Net(
    "mask-lowest",
    "float[2,4,4] x, bool[2,4,4] m",
    "float[2,4,4] y",
    "s = Mul(x, x)\n w = Where(m, s, low)\n y = Softmax(w)",
    {"x": normal(2, 4, 4), "m": np.zeros((2, 4, 4), bool)},
    {"low": f32(np.finfo(np.float32).min)},
)
GRID = Net(
    "affine-grid", "float[1,3,6,6] x, float[1,2,3] theta", "float[1,4,6,6] y",
    """
    c = Conv<pads=[1,1,1,1]>(x, w)
    t = Tanh(theta)
    shape = Shape(c)
    h = Gather(shape, i2)
    steps = Range(i0, h, i1)
    sf = Cast<to=1>(steps)
    hf = Cast<to=1>(h)
    line = Div(sf, hf)
    row = Unsqueeze(line, ax0)
    across = Expand(row, size)
    down = Transpose<perm=[1,0]>(across)
    ones = ConstantOfShape<value = float[1] {1.0}>(size)
    a = Unsqueeze(across, ax2)
    b = Unsqueeze(down, ax2)
    o = Unsqueeze(ones, ax2)
    base = Concat<axis=2>(a, b, o)
    flat = Reshape(base, s3)
    tt = Transpose<perm=[0,2,1]>(t)
    moved = MatMul(flat, tt)
    grid = Reshape(moved, s4)
    y = GridSample<align_corners=0>(c, grid)
    """,
    {"x": normal(1, 3, 6, 6), "theta": normal(1, 2, 3)},
    {"w": normal(4, 3, 3, 3), "i0": i64(0), "i1": i64(1), "i2": i64(2), "ax0": i64([0]), "ax2": i64([2]),
     "size": i64([6, 6]), "s3": i64([1, 36, 3]), "s4": i64([1, 6, 6, 2])},
)  # fmt: skip
CONSTANT_NODES = Net(
    "constant-nodes",
    "float[2,4] x",
    "float[2,4] y, float[1] k",
    """
    a = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>()
    e = Constant<value_float = 1e-9>()
    k = Constant<value = float[1] {3.0}>()
    z = Constant<value = float {0.5}>()
    m = Mul(x, a)
    ab = Abs(m)
    l = Add(ab, e)
    lg = Log(l)
    q = Mul(lg, z)
    s = Tanh(q)
    y = Mul(s, z)
    """,
    {"x": f32([[0, 0.1, 1, 2], [3, 0, 0.2, 4]])},
)
QUANTIZED = Net(
    "quantized", "float[1,4,5,5] x", "float[1,4,5,5] y",
    """
    q = QuantizeLinear(x, s, z)
    d = DequantizeLinear(q, s, z)
    wd = DequantizeLinear(wq, s, z)
    c = Conv<pads=[1,1,1,1]>(d, wd)
    r = Relu(c)
    q2 = QuantizeLinear(r, s, z)
    d2 = DequantizeLinear(q2, s, z)
    y = Conv(d2, w)
    """,
    {"x": normal(1, 4, 5, 5)},
    {"s": f32(0.05), "z": np.array(0, np.int8), "w": normal(4, 4, 1, 1),
     "wq": np.random.default_rng(0).integers(-9, 9, (4, 4, 3, 3)).astype(np.int8)},
)  # fmt: skip
SOFTMAX_BY_HAND = Net(
    "softmax-by-hand",
    "float[2,4,64] x",
    "float[2,4,64] y",
    "m = ReduceMax<axes=[-1]>(x)\n d = Sub(x, m)\n e = Exp(d)\n s = ReduceSum(e, ax)\n q = Div(e, s)\n"
    " y = MatMul(q, w)",
    {"x": normal(2, 4, 64, scale=20)},
    {"ax": i64([-1]), "w": normal(64, 64)},
)
USER_CAST = Net(
    "user-cast",
    "float[2,4] x",
    "float[2,4] y",
    "a = MatMul(x, w)\n b = Cast<to=1>(a)\n c = Softmax(b)\n d = Cast<to=10>(c)\n e = Relu(d)\n y = Cast<to=1>(e)",
    {"x": normal(2, 4)},
    {"w": normal(4, 4)},
)
OLD_CLIP = Net(
    "clip-of-opset-10",
    "float[2,4] x",
    "float[2,4] y",
    "a = MatMul(x, w)\n b = Clip<min=1e-12, max=3e38>(a)\n c = Log(b)\n y = MatMul(c, w)",
    {"x": normal(2, 4)},
    {"w": normal(4, 4)},
    opset=10,
)
SCALED = Net(
    "scaled-up-and-down",
    "float[2,4] x",
    "float[2,4] y",
    "a = MatMul(x, w)\n b = Mul(a, up)\n c = Mul(b, down)\n y = MatMul(c, w)",
    {"x": normal(2, 4)},
    {"w": normal(4, 4), "up": f32(1e6), "down": f32(1e-6)},
)

NETS = (
    CONV, L2NORM, ATTENTION, RESIZE, IF, LOOP, TRANSPOSED, INSTANCE, LSTM, EMBEDDING, EINSUM, MASK_INF, MASK_LOWEST,
    GRID, CONSTANT_NODES, QUANTIZED, SOFTMAX_BY_HAND, USER_CAST, OLD_CLIP, SCALED,
)  # fmt: skip
