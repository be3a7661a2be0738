"""ONNX Runtime's operators on bytes."""

import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss, model_of
from trtconv.rewrite.rules.missing.quantized.quantized_operator import FLOAT_OPS, RULE
from trtconv.rewrite.rules.missing.quantized.quantized_product import RULE as PRODUCT

CONSTANTS = "float s = {0.0312}, uint8 z = {117}, float t = {0.0417}, uint8 u = {90}"
SIGNED = "float s = {0.0312}, int8 z = {0}, float t = {0.0417}, int8 u = {0}"
BYTES = {"inputs": "uint8[N,8,H,W] x", "outputs": "uint8[a,b,c,d] y", "ranges": {"x": (0, 255)}}
INT8 = {"inputs": "int8[N,8,H,W] x", "outputs": "int8[a,b,c,d] y", "ranges": {"x": (-128, 127)}}


def contrib(model):
    for node in model.graph.node:
        if node.op_type in FLOAT_OPS:
            node.domain = "com.microsoft"
    model.opset_import.add(domain="com.microsoft", version=1)


def case(name, body, constants=CONSTANTS, facts=BYTES, **more):
    return Case(name, body, constants=constants, edit=contrib, **(facts | more))


# Halves and a step of one: every second sum is a tie.
TIES = "float s = {0.5}, uint8 z = {127}, float t = {1.0}, uint8 u = {127}"
SIGNED_TIES = "float s = {0.5}, int8 z = {-1}, float t = {1.0}, int8 u = {-1}"
TWICE = "y = QLinearAdd(m, t, u, x, s, z, t, u)"
CASES = [
    case("add", "y = QLinearAdd(x, s, z, x, t, u, t, u)", present=("Add", "QuantizeLinear")),
    case("add int8", "y = QLinearAdd(x, s, z, x, t, u, t, u)", SIGNED, INT8),
    case("ties about an odd zero point", "y = QLinearAdd(x, s, z, x, t, u, t, u)", TIES),
    case("ties of int8", "y = QLinearAdd(x, s, z, x, s, z, t, u)", SIGNED_TIES, INT8),
    case("ties of products", "y = QLinearMul(x, s, z, x, t, u, t, u)", TIES),
    case("mul", "y = QLinearMul(x, s, z, x, t, u, t, u)", present=("Mul",)),
    case("sigmoid", "y = QLinearSigmoid(x, s, z, t, u)", present=("Sigmoid",)),
    case("leaky relu", "y = QLinearLeakyRelu<alpha=0.1>(x, s, z, t, u)", present=("LeakyRelu",)),
    case(
        "average", "y = QLinearAveragePool<kernel_shape=[2,2], strides=[2,2]>(x, s, z, t, u)", present=("AveragePool",)
    ),
    case("average over all", "y = QLinearGlobalAveragePool(x, s, z, t, u)", present=("GlobalAveragePool",)),
    case("concat", "y = QLinearConcat<axis=1>(t, u, x, s, z, x, t, u)", present=("Concat",)),
    case("in a row, in one round", f"m = QLinearMul(x, s, z, x, t, u, t, u) {TWICE}", fires=2),
]
NEAR_MISSES = [
    case(
        "channels last", "y = QLinearAveragePool<kernel_shape=[2,2], channels_last=1>(x, s, z, t, u)", skip="last axis"
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


def test_a_product_behind_them_knows_its_types():
    """ONNX infers nothing of these operators, so that a scale for each channel would wait for a rank."""
    body = "m = QLinearAdd(x, s, z, x, t, u, t, u) y = QLinearMatMul(m, t, u, m, s, z, t, u)"
    model = model_of(case("both", body, inputs="uint8[N,8,16,16] x"))
    record = apply(model, (RULE, PRODUCT), "tensorrt-rtx")
    assert [e.rule for e in record.entries] == ["quantized-operator", "quantized-product"]
    assert not record.rejected
