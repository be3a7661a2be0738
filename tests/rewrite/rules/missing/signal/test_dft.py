# ruff: noqa: E501 - the text of a model stands on one line
"""Discrete Fourier transforms."""

import numpy as np
import onnx
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss
from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.rewrite.rules.missing.signal.dft import RULE

# Lengths of which ONNX Runtime's own DFT is exact; the others stand beside NumPy's below.
SIZES = ({"N": 2, "H": 16}, {"N": 1, "H": 8}, {"N": 3, "H": 32})
X = {"sizes": SIZES, "inputs": "float[N,H,16,1] x", "absent": ("DFT",)}
PAIRS = {"sizes": SIZES, "inputs": "float[N,H,16,2] x", "absent": ("DFT",)}
CASES = [
    Case("one side", "y = DFT<axis=2,onesided=1>(x)", **X),
    Case("both sides", "y = DFT<axis=-2>(x)", **X),
    Case("complex values", "y = DFT<axis=2>(x)", **PAIRS),
    Case("back", "y = DFT<axis=2,inverse=1>(x)", **PAIRS),
    Case("an axis that moves", "y = DFT<axis=1>(x)", **X),
    Case("one side of an axis that moves", "y = DFT<axis=1,onesided=1>(x)", **X),
    Case("back along an axis that moves", "y = DFT<axis=1,inverse=1>(x)", **PAIRS),
    Case("the axis as an input", "y = DFT<onesided=1>(x, , axis)", constants="int64 axis = {2}", opset=20, **X),
    Case("filled to a length", "y = DFT<axis=2>(x, n)", constants="int64 n = {32}", **X),
    Case("cut to a length", "y = DFT<axis=2,onesided=1>(x, n)", constants="int64 n = {8}", **X),
    Case("a moving axis of a given length", "y = DFT<axis=1>(x, n)", constants="int64 n = {16}", **X),
    Case("the default axis", "y = DFT(x)", opset=20, **X),
]
NEAR_MISSES = [
    Case("FP64", "y = DFT<axis=2>(x)", "double[N,H,16,1] x", "double[a,b,c,d] y", skip="FP32"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)


@pytest.mark.parametrize("length", [1, 2, 7, 400])
def test_lengths_that_are_no_power_of_two_give_numpys_values(length):
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,T,1] x) => (float[a,b,c] y) { y = DFT<axis=1,onesided=1>(x) }'
    model = onnx.parser.parse_model(text)
    apply(model, (RULE,), "tensorrt-rtx")
    assert "DFT" not in {n.op_type for n in model.graph.node}
    x = np.random.default_rng(0).uniform(-1, 1, (2, length, 1)).astype(np.float32)
    result = GraphRunner(model)({"x": x})["y"]
    exact = np.fft.rfft(x[..., 0].astype(np.float64), axis=1)
    np.testing.assert_allclose(result[..., 0] + 1j * result[..., 1], exact, atol=2e-6 * length**0.5 + 1e-7)
