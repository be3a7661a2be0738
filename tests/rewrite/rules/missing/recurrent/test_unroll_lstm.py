# ruff: noqa: E501 - the text of a model stands on one line
"""LSTM over a known number of steps, written out for TensorRT 8.6."""

from functools import partial

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.core.targets import parse_target
from trtconv.rewrite.rules.missing.recurrent.unroll_lstm import RULE

SIZES = ({"N": 2}, {"N": 1}, {"N": 5})
HIDDEN, INPUTS = 3, 4


def weighted(model, directions=1, dtype=np.float32, bias=True):
    """Put the weights in as initialisers."""
    rng = np.random.default_rng(0)
    rows = 4 * HIDDEN
    shapes = {"w": (rows, INPUTS), "r": (rows, HIDDEN), **({"b": (2 * rows,)} if bias else {})}
    for name in [n for n in shapes if any(n in node.output for node in model.graph.node)]:
        del shapes[name]
    for name, shape in shapes.items():
        values = rng.standard_normal((directions, *shape)) * 0.5
        model.graph.initializer.append(numpy_helper.from_array(values.astype(dtype), name))


def case(name, body, outputs="float[a,b,c,d] y", inputs="float[7,N,4] x", directions=1, bias=True, **options):
    options = {"absent": ("LSTM",), "target": "tensorrt==8.6", "sizes": SIZES} | options
    return Case(name, body, inputs, outputs, edit=partial(weighted, directions=directions, bias=bias), **options)


ALL = "float[a,b,c,d] y, float[e,f,g] h, float[i,j,k] c"
STATES = "float[7,N,4] x, float[2,N,3] h0, float[2,N,3] c0"
CASES = [
    case("forward", "y, h, c = LSTM<hidden_size=3>(x, w, r, b)", ALL),
    case("no bias", "y = LSTM<hidden_size=3>(x, w, r)", bias=False),
    case("reverse", 'y, h, c = LSTM<hidden_size=3,direction="reverse">(x, w, r, b)', ALL),
    case("both ways", 'y, h, c = LSTM<hidden_size=3,direction="bidirectional">(x, w, r, b)', ALL, directions=2),
    case(
        "initial states",
        'y, h, c = LSTM<hidden_size=3,direction="bidirectional">(x, w, r, b, , h0, c0)',
        ALL,
        STATES,
        directions=2,
    ),
    case("one initial state", "y = LSTM<hidden_size=3>(x, w, r, b, , h0)", inputs="float[7,N,4] x, float[1,N,3] h0"),
    case("last state only", "v, y = LSTM<hidden_size=3>(x, w, r, b)", "float[a,b,c] y"),
    case("two steps", "y = LSTM<hidden_size=3>(x, w, r, b)", inputs="float[2,N,4] x"),
    case(
        "weights put together",
        "one = Unsqueeze(w0, zero) w = Concat<axis=1>(one, one) y = LSTM<hidden_size=3>(x, w, r, b)",
        constants="float[6,4] w0 = {1,2,3,4,-1,-2,-3,-4,0.5,0.25,1,0,2,1,0,1,-1,0,1,1,0.5,0.5,-0.5,0}, int64[1] zero = {0}",
    ),
    case(
        "states that are zero",
        "s = Shape(x) n = Slice(s, one, two) d = Concat<axis=0>(one, n, three) z = Expand(nought, d) y = LSTM<hidden_size=3>(x, w, r, b, , z, z)",
        constants="int64[1] one = {1}, int64[1] two = {2}, int64[1] three = {3}, float nought = {0}",
        absent=("LSTM", "Expand"),
    ),
    case("later opset", "y = LSTM<hidden_size=3>(x, w, r, b)", opset=20),
]
NEAR_MISSES = [
    case("steps that move", "y = LSTM<hidden_size=3>(x, w, r, b)", inputs="float[T,N,4] x", skip="not fixed"),
    case("one step", "y = LSTM<hidden_size=3>(x, w, r, b)", inputs="float[1,N,4] x", skip="1 steps"),
    case("many steps", "y = LSTM<hidden_size=3>(x, w, r, b)", inputs="float[65,N,4] x", skip="65 steps"),
    case("lengths", "y = LSTM<hidden_size=3>(x, w, r, b, l)", inputs="float[7,N,4] x, int32[N] l", skip="sequence lengths"),
    case("peepholes", "y = LSTM<hidden_size=3>(x, w, r, b, , , , p)", inputs="float[7,N,4] x, float[1,9] p", skip="peepholes"),
    case("other activations", 'y = LSTM<hidden_size=3,activations=["Sigmoid","Tanh","Relu"]>(x, w, r, b)', skip="activations of its own"),
    case("a clip", "y = LSTM<hidden_size=3,clip=1.0>(x, w, r, b)", skip="clip"),
    case("coupled gates", "y = LSTM<hidden_size=3,input_forget=1>(x, w, r, b)", skip="coupled"),
    Case("weights as inputs", "y = LSTM<hidden_size=3>(x, w, r)", "float[7,N,4] x, float[1,12,4] w, float[1,12,3] r", "float[a,b,c,d] y", target="tensorrt==8.6", skip="computed while"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize(
    ("target", "needed"), [("tensorrt==8.6", True), ("tensorrt==10", False), ("tensorrt-rtx", False)]
)
def test_the_loop_was_measured_on_8_6_only(target, needed):
    assert RULE.needed(parse_target(target)) == needed
