# ruff: noqa: E501 - the text of a model stands on one line
"""A depthwise convolution with its layer normalisation, and ConvNeXt's blocks, in which the Transposes between cancel."""

from collections import Counter

import numpy as np
import pytest
from onnx import helper

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of, runner
from trtconv.core.model.opset import opset_of
from trtconv.rewrite.graph.fragment import with_plugin_bodies
from trtconv.rewrite.rules.cleanup import drop_identity, merge_transposes, transpose_after_sum
from trtconv.rewrite.rules.plugin.plugin_depthwise_conv_layer_norm import RULE

T = "tensorrt==8.6"
OP = "TrtconvDepthwiseConvLayerNorm"


def values(count: int, seed: int) -> str:
    drawn = np.random.default_rng(seed).standard_normal(count)
    return "{" + ",".join(f"{v:.3f}" for v in drawn) + "}"


def weights(size: int) -> str:
    vectors = ", ".join(f"float[8] {name} = {values(8, seed)}" for seed, name in enumerate("bst"))
    return f"float[8,1,{size},{size}] k = {values(8 * size * size, 9)}, {vectors}"


CONV3 = "Conv<group=8, kernel_shape=[3,3], pads=[1,1,1,1]>"
TRANSPOSE = "r = Transpose<perm=[0,2,3,1]>(c)"
PLAIN = f"c = {CONV3}(x, k, b) {TRANSPOSE} y = LayerNormalization<axis=-1, epsilon=1e-6>(r, s, t)"
MADE = {"target": T, "present": (OP,), "absent": ("Conv", "LayerNormalization")}
CASES = [
    Case("3 x 3", PLAIN, constants=weights(3), **MADE),
    Case("5 x 5, axis 3", f"c = Conv<group=8, kernel_shape=[5,5], pads=[2,2,2,2]>(x, k, b) {TRANSPOSE} y = LayerNormalization<axis=3>(r, s, t)", constants=weights(5), **MADE),
    Case("7 x 7, SAME_UPPER", f'c = Conv<group=8, auto_pad="SAME_UPPER", kernel_shape=[7,7]>(x, k, b) {TRANSPOSE} y = LayerNormalization(r, s, t)', constants=weights(7), **MADE),
    Case("neither bias nor shift", f"c = {CONV3}(x, k) {TRANSPOSE} y = LayerNormalization(r, s)", constants=weights(3), **MADE),
]  # fmt: skip
NEAR_MISSES = [
    Case("stride", PLAIN.replace("pads", "strides=[2,2], pads"), constants=weights(3), target=T, skip="stride"),
    Case("dilation", PLAIN.replace("pads=[1,1,1,1]", "dilations=[2,2], pads=[2,2,2,2]"), constants=weights(3), target=T, skip="stride"),
    Case("no padding", PLAIN.replace("pads=[1,1,1,1]", "pads=[0,0,0,0]"), constants=weights(3), target=T, skip="pads"),
    Case("another axis", PLAIN.replace("axis=-1", "axis=2").replace("(r, s, t)", "(r, s)"), constants=weights(3), target=T, skip="over the channels"),
    Case("the convolution is used twice", PLAIN.replace("y =", "n =") + " m = ReduceMax<keepdims=1>(c) y = Add(n, m)", constants=weights(3), target=T, skip="elsewhere"),
    Case("another order", PLAIN.replace("[0,2,3,1]", "[0,3,2,1]"), constants=weights(3), target=T),
    Case("three groups", "c = Conv<group=2, kernel_shape=[1,1]>(x, g) r = Transpose<perm=[0,2,3,1]>(c) y = LayerNormalization(r, s, t)", constants=f"float[8,4,1,1] g = {values(32, 7)}, {weights(3)}", target=T, skip="one square"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def block(x: str, y: str) -> str:
    """ConvNeXt's block as exporters write it, with one product."""
    return (
        f"c{y} = {CONV3}({x}, k, b) r{y} = Transpose<perm=[0,2,3,1]>(c{y}) n{y} = LayerNormalization(r{y}, s, t) "
        f"p{y} = MatMul(n{y}, w) u{y} = Transpose<perm=[0,3,1,2]>(p{y}) g{y} = Mul(u{y}, gamma) {y} = Add(g{y}, {x}) "
    )


def with_shapes(model):
    """As exporters write them, of the values between blocks."""
    for name in ("x1", "x2", "y"):
        for value, dims in ((name, ["N", 8, 9, 7]), (f"n{name}", ["N", 9, 7, 8]), (f"p{name}", ["N", 9, 7, 8])):
            if value != "y":
                model.graph.value_info.append(helper.make_tensor_value_info(value, 1, dims))


def test_between_blocks_no_transpose_is_left():
    constants = f"{weights(3)}, float[8,8] w = {values(64, 5)}, float[1,8,1,1] gamma = {values(8, 6)}"
    case = Case(
        "blocks",
        block("x", "x1") + block("x1", "x2") + block("x2", "y"),
        "float[N,8,9,7] x",
        constants=constants,
        edit=with_shapes,
    )
    before = model_of(case)
    after = model_of(case)
    record = apply(after, (RULE, drop_identity.RULE, merge_transposes.RULE, transpose_after_sum.RULE), T)
    assert not record.rejected
    counts = Counter(n.op_type for n in after.graph.node)
    assert counts[OP] == 3
    assert counts["Transpose"] == 2, "one before the first block, one after the last"
    assert opset_of(after, 0) == opset_of(before, 0)
    x = np.random.default_rng(0).standard_normal((2, 8, 9, 7)).astype(np.float32)
    expected, actual = (runner(with_plugin_bodies(m))({"x": x})["y"] for m in (before, after))
    np.testing.assert_allclose(actual, expected, atol=2e-5)
