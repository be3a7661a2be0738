# ruff: noqa: E501 - the text of a model stands on one line
"""Normalisations of whole images, PoolFormer's blocks around them, and the products that read what is normalised."""

from collections import Counter

import numpy as np
import pytest
from onnx import helper

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from tests.rewrite.rules.plugin.test_plugin_depthwise_conv_layer_norm import values
from trtconv.rewrite.graph.fragment import with_plugin_bodies
from trtconv.rewrite.rules.cleanup import drop_identity, merge_transposes, transpose_after_sum
from trtconv.rewrite.rules.plugin import plugin_linear
from trtconv.rewrite.rules.plugin.plugin_group_norm import RULE

T, OP = "tensorrt==8.6", "TrtconvGroupNorm"
IMAGE, OUT = "float[N,4,5,3] x", "float[N,4,5,3] y"
CONSTANTS = (
    f"int64[3] flat = {{0,1,-1}}, int64[4] image = {{-1,4,5,3}}, float[1] one = {{1}}, float[1] zero = {{0}}, "
    f"float[4,1,1] w = {values(4, 1)}, float[4,1,1] b = {values(4, 2)}, float[4,1,1] g = {values(4, 3)}, float half = {{0.5}}, "
    f"float[6,4,1,1] k = {values(24, 4)}, float[6] c = {values(6, 5)}, float[4,6,1,1] l = {values(24, 6)}, float[4] d = {values(4, 7)}, "
    f"float[4,4,3,3] wide = {values(144, 8)}, float[4] s = {values(4, 9)}, float[4] t = {values(4, 10)}"
)


def norm(x: str, y: str, affine: bool = True) -> str:
    """As torch.onnx writes a GroupNorm of one group."""
    last = f"m{y} = Mul(u{y}, w) {y} = Add(m{y}, b) " if affine else f"{y} = Identity(u{y}) "
    return f"f{y} = Reshape({x}, flat) i{y} = InstanceNormalization<epsilon=0.001>(f{y}, one, zero) u{y} = Reshape(i{y}, image) {last}"


POOL = "p = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(n) a = Sub(p, n) "
MIX = norm("x", "n") + POOL + "q = Mul(a, g) y = Add(x, q)"
PRODUCTS = norm("x", "n") + "h = Conv(n, k, c) e = Relu(h) y = Conv(e, l, d)"
MADE = {"target": T, "present": (OP,), "absent": ("InstanceNormalization", "AveragePool", "Conv")}


def shaped(model) -> None:
    """With the sizes of the values between, as exporters write them."""
    for node in model.graph.node:
        for name in node.output:
            dims = ["N", 4, 5, 3]
            if name.startswith(("f", "i")):
                dims = ["N", 1, 60]
            elif name.startswith(("h", "e")):
                dims = ["N", 6, 5, 3]
            if name != "y":
                model.graph.value_info.append(helper.make_tensor_value_info(name, 1, dims))


def case(name: str, text: str, **values) -> Case:
    return Case(name, text, IMAGE, OUT, constants=CONSTANTS, edit=shaped, **values)


CASES = [
    case("mixing", MIX, **MADE),
    case("summands the other way round", MIX.replace("Add(x, q)", "Add(q, x)"), **MADE),
    case("without a layer scale", norm("x", "n") + POOL + "y = Add(x, a)", **MADE),
    case("one factor for all channels", MIX.replace("Mul(a, g)", "Mul(a, half)"), **MADE),
    case("products", PRODUCTS, **MADE),
    case("products without a bias", norm("x", "n") + "h = Conv(n, k) e = Sigmoid(h) y = Conv(e, l)", **MADE),
    case("GroupNormalization", "n = GroupNormalization<num_groups=1>(x, s, t) h = Conv(n, k, c) y = Conv(h, l)", opset=21, **MADE),
]  # fmt: skip
NEAR_MISSES = [
    case("a window of another size", MIX.replace("kernel_shape=[3,3], pads=[1,1,1,1]", "kernel_shape=[5,5], pads=[2,2,2,2]"), target=T, skip="single pixels"),
    case("padding counts", MIX.replace("AveragePool<", "AveragePool<count_include_pad=1, "), target=T, skip="single pixels"),
    case("another residual", MIX.replace("Add(x, q)", "Add(n, q)"), target=T, skip="single pixels"),
    case("a convolution of nine pixels", norm("x", "n") + "y = Conv<pads=[1,1,1,1]>(n, wide)", target=T, skip="single pixels"),
    case("read twice", norm("x", "n") + "h = Conv(n, k) e = Conv(h, l) y = Add(e, n)", target=T, skip="single pixels"),
    case("two groups", "n = GroupNormalization<num_groups=2>(x, s, t) h = Conv(n, k, c) y = Conv(h, l)", opset=21, target=T),
]  # fmt: skip


@pytest.mark.parametrize("one", CASES, ids=str)
def test_fires(one):
    check_case(RULE, one)


@pytest.mark.parametrize("one", NEAR_MISSES, ids=str)
def test_near_miss(one):
    check_near_miss(RULE, one)


def block(x: str, y: str) -> str:
    """PoolFormer's, with names of its own."""
    parts = [
        norm(x, f"n{y}"), f"p{y} = AveragePool<kernel_shape=[3,3], pads=[1,1,1,1]>(n{y}) a{y} = Sub(p{y}, n{y}) ",
        f"q{y} = Mul(a{y}, g) r{y} = Add({x}, q{y}) ", norm(f"r{y}", f"o{y}"),
        f"h{y} = Conv(o{y}, k, c) e{y} = Gelu(h{y}) v{y} = Conv(e{y}, l, d) j{y} = Mul(v{y}, g) {y} = Add(r{y}, j{y}) ",
    ]  # fmt: skip
    return "".join(parts)


def test_blocks_stay_channels_last():
    whole = case("blocks", block("x", "x1") + block("x1", "y"), opset=20)
    before, after = model_of(whole), model_of(whole)
    rules = (RULE, plugin_linear.RULE, drop_identity.RULE, merge_transposes.RULE, transpose_after_sum.RULE)
    record = apply(after, rules, T)
    assert not record.rejected
    counts = Counter(n.op_type for n in after.graph.node)
    assert counts[OP] == counts["TrtconvLinear"] == 4
    assert counts["Transpose"] == 2, "one before the first block, one after the last"
    assert set(counts) <= {OP, "TrtconvLinear", "Transpose"}
    x = np.random.default_rng(0).standard_normal((2, 4, 5, 3)).astype(np.float32)
    expected, actual = (runner(with_plugin_bodies(m))({"x": x})["y"] for m in (before, after))
    np.testing.assert_allclose(actual, expected, atol=5e-5)
