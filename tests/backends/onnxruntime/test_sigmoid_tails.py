"""Sigmoids as accurate as FP32 far below zero."""

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.sigmoid_tails import with_exact_sigmoids

X = np.linspace(-80, 80, 2001).astype(np.float32)
EXPECTED = 1 / (1 + np.exp(-X.astype(np.float64)))


def model_of(body, opset=17):
    return onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["": {opset}]>
    g (float[N] x) => (float[N] y) {{ {body} }}""")


@pytest.mark.parametrize(
    "body",
    [
        "y = Sigmoid(x)",
        "s = Sigmoid(x)  y = Identity(s)",
        "c = Constant <value_int: int = 1>()  b = Cast <to: int = 9>(c)"
        " y = If (b) <then_branch = t () => (float[N] a) { a = Sigmoid(x) },"
        " else_branch = e () => (float[N] d) { d = Identity(x) }>",
    ],
)
def test_scores_near_zero_keep_their_digits(body):
    y = OnnxRuntimeRunner(model_of(body).SerializeToString())({"x": X})["y"]
    assert np.max(np.abs(y - EXPECTED) / EXPECTED) < 4e-7


def test_without_it_the_kernel_is_cut_off():
    run = OnnxRuntimeRunner(model_of("y = Sigmoid(x)").SerializeToString(), exact=False)
    assert not run({"x": np.float32([-40, -20])})["y"].any()


def test_a_silu_far_below_zero_keeps_its_digits():
    y = OnnxRuntimeRunner(model_of("s = Sigmoid(x)  y = Mul(s, x)").SerializeToString())({"x": X})["y"]
    expected = X * EXPECTED
    assert np.all(np.abs(y - expected) <= 5e-7 * np.abs(expected))


def test_infinities_and_nan_stay_what_they_are():
    x = np.array([np.inf, -np.inf, np.nan, 200, -200], np.float32)
    y = OnnxRuntimeRunner(model_of("y = Sigmoid(x)").SerializeToString())({"x": x})["y"]
    np.testing.assert_array_equal(y, np.array([1, 0, np.nan, 1, 0], np.float32))


@pytest.mark.parametrize(
    "model",
    [model_of("y = HardSigmoid(x)"), model_of("y = Sigmoid(x)", 13)],
    ids=["another operator", "no CastLike"],
)
def test_other_graphs_are_taken_as_they_are(model):
    before = model.SerializeToString()
    assert not with_exact_sigmoids(model)
    assert model.SerializeToString() == before
