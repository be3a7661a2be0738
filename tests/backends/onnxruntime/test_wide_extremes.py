"""The larger and the smaller of int64 numbers whose upper halves are equal, in a graph and in the sides of an If."""

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.wide_extremes import with_exact_extremes

NUMBERS = np.array([[-6164040000, -(2**33), 3_000_000_000, 5, -1, 0, 2**41, -(2**63), 2**63 - 1]])
HEAD = '<ir_version: 9, opset_import: ["" : 18]> g (int64[1,K] x, int64[1,K] y) => (int64[1,K] out)'


def outcome(body, initializers=""):
    model = onnx.parser.parse_model(f"{HEAD} <{initializers}> {{ {body} }}" if initializers else f"{HEAD} {{ {body} }}")
    runner = OnnxRuntimeRunner(model.SerializeToString())
    return lambda x, y: runner({"x": x, "y": y})["out"]


@pytest.mark.parametrize(
    ("body", "numpy"),
    [
        ("out = Max(x, y)", np.maximum),
        ("out = Min(x, y)", np.minimum),
        ("z = Neg(y) out = Max(x, z, y)", lambda x, y: np.maximum(np.maximum(x, -y), y)),
    ],
)
def test_of_two_and_more(body, numpy):
    run = outcome(body)
    for shift in range(NUMBERS.size):
        other = np.roll(NUMBERS, shift, axis=1)
        np.testing.assert_array_equal(run(NUMBERS, other), numpy(NUMBERS, other))


@pytest.mark.parametrize(("low", "high"), [(-(2**33), 2**40), (5, 100), (2_500_000_000, 2_600_000_000)])
def test_clips(low, high):
    bounds = f"int64 low = {{{low}}}, int64 high = {{{high}}}"
    for body, expected in (
        ("s = Add(x, y) out = Clip(x, low, high)", np.clip(NUMBERS, low, high)),
        ("out = Clip(x, low)", np.maximum(NUMBERS, low)),
        ("out = Clip(x, , high)", np.minimum(NUMBERS, high)),
    ):
        np.testing.assert_array_equal(outcome(body, bounds)(NUMBERS, NUMBERS * 0), expected)


def test_signs():
    np.testing.assert_array_equal(outcome("out = Sign(x)")(NUMBERS, NUMBERS), np.sign(NUMBERS))


@pytest.mark.parametrize(("body", "axes"), [
    ("a = Concat<axis=0>(x, y) m = {}<keepdims=1, axes=[0]>(a) out = Identity(m)", (0,)),
    ("a = Concat<axis=0>(x, y) m = {}<keepdims=0>(a) e = Sub(x, x) out = Add(e, m)", (0, 1)),
    ("a = Concat<axis=0>(x, y) m = {}<keepdims=0, axes=[1, 0]>(a) e = Sub(x, x) out = Add(e, m)", (0, 1)),
    ("a = Concat<axis=0>(x, y) m = {}<axes=[-1]>(a) l = ReduceSum<keepdims=0>(m) e = Sub(x, x) out = Add(e, l)", (1,)),
])  # fmt: skip
@pytest.mark.parametrize("name", ["ReduceMax", "ReduceMin"])
def test_reductions(name, body, axes):
    text = f"{HEAD.replace('18', '13')} {{ {body.format(name)} }}"
    runner = OnnxRuntimeRunner(onnx.parser.parse_model(text).SerializeToString())
    reduce = np.max if name == "ReduceMax" else np.min
    rows = np.array([[-6164040000, 3_000_000_000, 2**31, 7]])
    for shift in range(rows.size):
        other = np.roll(rows, shift, axis=1) - 5
        expected = reduce(np.concatenate([rows, other]), axis=axes, keepdims=True)
        expected = expected.sum() if axes == (1,) else expected
        outputs = runner({"x": rows, "y": other})["out"]
        np.testing.assert_array_equal(outputs, np.broadcast_to(expected, outputs.shape))


@pytest.mark.parametrize(("axes", "largest"), [
    ("a = Constant<value_ints=[1]>()", 2**31),
    ("a = Constant<value = int64[1] {1}>()", 2**31),
    # Axes that are computed leave the reduction to ONNX Runtime.
    ("z = Constant<value_ints=[0]>() one = Constant<value_ints=[1]>() a = Add(z, one)", 7),
])  # fmt: skip
def test_axes_that_an_input_has(axes, largest):
    head = HEAD.replace("int64[1,K] out", "int64[1] out")
    text = f"{head} {{ {axes} out = ReduceMax<keepdims=0>(x, a) }}"
    runner = OnnxRuntimeRunner(onnx.parser.parse_model(text).SerializeToString())
    row = np.array([[largest, 5, -3]])
    assert runner({"x": row, "y": row})["out"].tolist() == [largest]


def test_floats_and_models_without_int64_among_their_inputs_stay():
    text = '<ir_version: 9, opset_import: ["" : 18]> g ({kind}[K] x) => ({kind}[K] out) {{ out = Max(x, x) }}'
    assert not with_exact_extremes(onnx.parser.parse_model(text.format(kind="float")))
    assert with_exact_extremes(onnx.parser.parse_model(text.format(kind="int64")))
