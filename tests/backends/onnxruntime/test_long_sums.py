"""Sums of many elements, which ONNX Runtime adds up one by one in FP32."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.long_sums import with_exact_sums
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY

TEXT = """<ir_version: 8, opset_import: ["" : %d]>
agraph (float[N,2,H,W] x, float[2] s, float[2] b) => (float[d0,d1,d2,d3] y) { %s }"""
SIDE = 600
CASES = {
    "ReduceMean": lambda x: x.mean((2, 3), keepdims=True),
    "ReduceSum": lambda x: x.sum((2, 3), keepdims=True),
    "ReduceSumSquare": lambda x: (x * x).sum((2, 3), keepdims=True),
    "ReduceL1": lambda x: np.abs(x).sum((2, 3), keepdims=True),
    "ReduceL2": lambda x: np.sqrt((x * x).sum((2, 3), keepdims=True)),
    "GlobalAveragePool": lambda x: x.mean((2, 3), keepdims=True),
    "InstanceNormalization": lambda x: normalised(x),
}
OTHERS = {
    "GlobalAveragePool": "y = GlobalAveragePool(x)",
    "InstanceNormalization": "y = InstanceNormalization(x, s, b)",
}


def normalised(x):
    centred = x - x.mean((2, 3), keepdims=True)
    return centred / np.sqrt((centred**2).mean((2, 3), keepdims=True) + 1e-5) * [[[2.0]], [[0.5]]] + [[[1.0]], [[3.0]]]


def graph(operator, opset=18, axes="-2,-1"):
    by_attribute = opset < 18 and operator != "ReduceSum"
    axes_input = f"a = Constant<value_ints=[{axes}]>() y = {operator}(x, a)"
    reduced = f"y = {operator}<axes=[{axes}]>(x)" if by_attribute else axes_input
    return onnx.parser.parse_model(TEXT % (opset, OTHERS.get(operator, reduced)))


@pytest.mark.parametrize("opset", [13, 18])
@pytest.mark.parametrize("operator", CASES)
def test_a_long_sum_is_that_of_fp64(operator, opset):
    x = np.random.default_rng(0).standard_normal((1, 2, SIDE, SIDE)).astype(np.float32) * 3 + 1
    feed = {"x": x, "s": np.float32([2, 0.5]), "b": np.float32([1, 3])}
    expected = CASES[operator](x.astype(np.float64))
    scale = np.sqrt((expected**2).mean())
    run = OnnxRuntimeRunner(graph(operator, opset).SerializeToString(), threads=1)
    assert np.abs(run(feed)["y"] - expected).max() < 5e-7 * scale
    plain = OnnxRuntimeRunner(graph(operator, opset).SerializeToString(), threads=1, exact=False)
    assert np.abs(plain(feed)["y"] - expected).max() > 5e-7 * scale


def test_sizes_that_are_declared_small_stay_in_fp32():
    model = graph("ReduceMean")
    model.metadata_props.add(key=INPUTS_KEY, value="x:float32[N,2,H,W]\ns:float32[2]\nb:float32[2]")
    small, large = onnx.ModelProto(), onnx.ModelProto()
    for copy, space in ((small, "N=1:2:4 H=8:16:32 W=8:16:32"), (large, "N=1:2:4 H=8:16:512 W=8:16:512")):
        copy.CopyFrom(model)
        copy.metadata_props.add(key=SPACE_KEY, value=space)
    assert not with_exact_sums(small)
    assert with_exact_sums(large)


def test_sums_over_the_channels_stay_in_fp32():
    assert not with_exact_sums(graph("ReduceMean", axes="1"))


def test_a_part_of_a_graph_whose_output_has_no_type_is_taken():
    model = graph("ReduceMean")
    model.graph.output[0].ClearField("type")
    assert with_exact_sums(model)
