# ruff: noqa: E501 - the text of a model stands on one line
"""Windows and mel filters of constant size."""

import numpy as np
import onnx
import pytest

from tests.rewrite.harness import Case, apply, check_case, check_near_miss
from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.rewrite.rules.missing.signal.signal_constants import RULE
from trtconv.rewrite.rules.newer.operators.stft import RULE as STFT

X = {"sizes": ({"N": 2}, {"N": 1}, {"N": 5}), "inputs": "float[N,17] x", "outputs": "float[a,b] y"}
SIZE = "int64 size = {17}"
MEL = "int64 filters = {6}, int64 frame = {32}, int64 rate = {16000}, float low = {20.0}, float high = {8000.0}"
CASES = [
    Case("hann", "w = HannWindow(size) y = Mul(x, w)", constants=SIZE, **X),
    Case("hann of both ends", "w = HannWindow<periodic=0>(size) y = Mul(x, w)", constants=SIZE, **X),
    Case("hamming", "w = HammingWindow(size) y = Mul(x, w)", constants=SIZE, **X),
    Case("blackman", "w = BlackmanWindow<periodic=0>(size) y = Mul(x, w)", constants=SIZE, **X),
    Case("mel", "m = MelWeightMatrix(filters, frame, rate, low, high) y = MatMul(x, m)", constants=MEL, **X),
]
NEAR_MISSES = [
    Case("a size that moves", "n = Shape(x) s = ReduceProd<keepdims=0>(n) y = HannWindow(s)", "float[N,17] x", "float[a] y", skip="its size is not a constant"),
    Case("too many", "w = HannWindow(size) y = ReduceSum<keepdims=0>(w) ", "float[N,17] x", "float y", constants="int64 size = {2000000}", skip="up to 1048576 are stored"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_stays(case):
    check_near_miss(RULE, case)


def test_stft_gets_its_window():
    text = '<ir_version: 8, opset_import: ["" : 17]> g (float[N,T,1] x) => (float[a,b,c,d] y) <int64 step = {5}, int64 size = {16}> { w = HannWindow(size) y = STFT(x, step, w, size) }'
    model = onnx.parser.parse_model(text)
    x = np.random.default_rng(0).uniform(-1, 1, (2, 40, 1)).astype(np.float32)
    expected = GraphRunner(model)({"x": x})["y"]
    apply(model, (RULE, STFT), "tensorrt==8.6")
    assert not {"HannWindow", "STFT"} & {n.op_type for n in model.graph.node}
    np.testing.assert_allclose(GraphRunner(model)({"x": x})["y"], expected, atol=1e-5)


def test_the_mel_matrix_is_that_of_the_definition():
    text = f'<ir_version: 8, opset_import: ["" : 17]> g (float[N,17] x) => (float[a,b] y) <{MEL}> {{ {CASES[-1].body} }}'
    model = onnx.parser.parse_model(text)
    before = GraphRunner(model)({"x": np.eye(17, dtype=np.float32)})["y"]
    apply(model, (RULE,), "tensorrt==8.6")
    assert "MelWeightMatrix" not in {n.op_type for n in model.graph.node}
    np.testing.assert_array_equal(GraphRunner(model)({"x": np.eye(17, dtype=np.float32)})["y"], before)
