# ruff: noqa: E501 - the text of a model stands on one line
"""Q/DQ pairs that TensorRT does not take."""

import numpy as np
import pytest
from onnx import numpy_helper

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.quantized.asymmetric_pair import RULE

RNG = np.random.default_rng(0)
# A scale that is a power of two has ties; 0.1 has none that is exact.
UINT8 = "float s = {0.1}, uint8 z = {117}"
TIES = "float s = {0.25}, uint8 z = {3}"
INT8 = "float s = {0.1}, int8 z = {-5}"
SYMMETRIC = "float s = {0.1}, int8 z = {0}"
PAIR = "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"
CHANNELS = "float[8] s = {0.1, 0.2, 0.3, 0.1, 0.2, 0.3, 0.1, 0.2}, uint8[8] z = {0, 1, 2, 3, 200, 255, 128, 127}"
WEIGHTS = "float[N,16] x"


def with_weights(dtype):
    def edit(model):
        info = np.iinfo(dtype)
        values = RNG.integers(max(info.min, -1000), min(info.max, 1000), (16, 5)).astype(dtype)
        model.graph.initializer.append(numpy_helper.from_array(values, "w"))

    return edit


PRODUCT = "f = DequantizeLinear(w, s, z) y = MatMul(x, f)"
BOTH = ("QuantizeLinear", "DequantizeLinear")
CASES = [
    Case("unsigned bytes", PAIR, constants=UINT8, absent=BOTH),
    Case("ties", PAIR, constants=TIES, absent=BOTH),
    Case("unsigned from zero", PAIR, constants="float s = {0.1}, uint8 z = {0}", absent=BOTH),
    Case("no zero point", "q = QuantizeLinear(x, s) y = DequantizeLinear(q, s)", constants="float s = {0.1}", absent=BOTH),
    Case("signed bytes with a zero point", PAIR, constants=INT8, absent=BOTH),
    Case("one for each channel", PAIR, constants=CHANNELS, absent=BOTH),
    Case("another axis", "q = QuantizeLinear<axis=-3>(x, s, z) y = DequantizeLinear<axis=-3>(q, s, z)", constants=CHANNELS, absent=BOTH),
    Case("bytes that enter", "y = DequantizeLinear(x, s, z)", inputs="uint8[N,8,H,W] x", constants=UINT8, ranges={"x": (0, 255)}, absent=BOTH),
    Case("bytes that leave", "y = QuantizeLinear(x, s, z)", outputs="uint8[a,b,c,d] y", constants=UINT8, absent=BOTH),
    Case("weights", PRODUCT, inputs=WEIGHTS, outputs="float[a,b] y", constants=UINT8, edit=with_weights(np.uint8), absent=BOTH),
    Case("a bias of int32", PRODUCT, inputs=WEIGHTS, outputs="float[a,b] y", constants="float s = {0.001}, int32 z = {0}", edit=with_weights(np.int32), absent=BOTH),
]  # fmt: skip
NEAR_MISSES = [
    Case("what TensorRT runs in INT8", PAIR, constants=SYMMETRIC),
    Case("weights that TensorRT takes", PRODUCT, inputs=WEIGHTS, outputs="float[a,b] y", constants=SYMMETRIC, edit=with_weights(np.int8)),
    Case("a scale that is computed", "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)", inputs="float[N,8,H,W] x, float s", constants="uint8 z = {7}", ranges={"s": (0.1, 0.2)}, skip="not a constant"),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
