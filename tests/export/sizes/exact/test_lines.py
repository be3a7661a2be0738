"""What Python computes of a size in FP64 as whole numbers, for every size of a range."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.shape_space.space import DimRange
from trtconv.export.sizes.exact.lines import MOST_EXCEPTIONS, fit

FUNCTIONS = [
    ("seven tenths", lambda n: int(n * 0.7)),
    ("29 hundredths", lambda n: int(n * 0.29)),
    ("more by a tenth", lambda n: math.ceil(n * 1.1)),
    ("over 2.4", lambda n: math.ceil(n / 2.4)),
    ("half up", lambda n: int(n * 0.35 + 0.5)),
    ("other rate", lambda n: int(n * 16000 / 22050)),
    ("constant", lambda n: 7),
    ("below zero", lambda n: math.floor((n / 1000 - 0.1) / 0.01)),
    ("falling", lambda n: int(400 - n * 0.3)),
    ("a root", lambda n: int(n**0.5)),
    ("another root", lambda n: round(n ** (1 / 3))),
    ("a root, scaled", lambda n: math.floor(n**0.5 * 1.1)),
]


def at(exact, size):
    for special, value in exact.exceptions:
        if size == special:
            return value
    whole = exact.factor * size + exact.shift
    assert whole >= 0, "ONNX's division of negative numbers rounds up"
    return exact.base + whole // exact.divisor + sum(jump for first, jump in exact.steps if size >= first)


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
@pytest.mark.parametrize("rng", [DimRange(5, 60, 140), DimRange(1, 300, 700), DimRange(64, 128, 640, 32)])
def test_the_formula_holds_at_every_size(name, function, rng):
    exact = fit("v", "H", rng, [function(n) for n in rng.values()])
    assert exact is not None
    assert len(exact.exceptions) <= MOST_EXCEPTIONS
    assert all(at(exact, n) == function(n) for n in rng.values())


def test_one_exception_is_the_rounding_of_the_product():
    exact = fit("v", "W", DimRange(11, 30, 60), [math.ceil(n * 1.1) for n in range(11, 61)])
    assert exact.exceptions == ((50, 56),)
    assert at(exact, 50) == 56


@pytest.mark.sampled(2)
@pytest.mark.parametrize("line", ["int(t ** (1 / 3))", "math.floor(math.sqrt(t) * 1.1)", "round(t**0.5)"])
def test_a_root_of_a_size_is_python_s_in_a_file(write_module, export, tmp_path, line):
    path = write_module(
        "import math\nclass Net(nn.Module):\n    def forward(self, x):\n        t = x.shape[1]\n"
        f"        return x[:, : {line}].sum(1)\n"
    )
    export(f"{path}:Net", ["x:float32[N,T]"], "N=1:1:2 T=1:11:400", exporter="dynamo")
    run = OnnxRuntimeRunner(tmp_path / "out" / "model.onnx")
    for size in (*range(1, 130), 216, 343, 399):
        (count,) = run({"x": np.ones((1, size), np.float32)})["output"]
        assert count == min(eval(line, {"t": size, "math": math}), size), size


def test_what_is_no_line_is_left():
    assert fit("v", "H", DimRange(1, 50, 2000), [n * n // 3 for n in range(1, 2001)]) is None
    assert fit("v", "H", DimRange(7, 7, 7), [3]) is None


@pytest.mark.parametrize("share", [0.35, 0.29, 1 / 3, 16000 / 22050])
def test_a_range_of_tens_of_thousands_of_sizes(share):
    top = 16_000 if share == 0.35 else 50_000
    rng = DimRange(1, 500, top)
    exact = fit("n", "T", rng, [int(n * share + 4) for n in rng.values()])
    assert exact is not None
    assert all(at(exact, n) == int(n * share + 4) for n in range(1, top + 1, 7))
    assert all(at(exact, n) == v for n, v in exact.exceptions)
    assert exact.factor * top + exact.shift < 2**31
