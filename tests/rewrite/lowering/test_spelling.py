# ruff: noqa: E501 - the text of a model stands on one line
"""Forms that parsers do not read."""

import numpy as np
import onnx
import onnxruntime
import pytest

from trtconv.core.targets import parse_target
from trtconv.rewrite.lowering.spelling import count_axes_from_start, spell_for_parsers, write_kernel_shapes

SCAN = """<ir_version: 8, opset_import: ["" : 17]> agraph (float[N] z, float[N,T] x, float[N,T,2] u) => (float[a] h, float[b,c] y) {
 h, y = Scan<num_scan_inputs=2, scan_input_axes=[-1, -2], scan_output_axes=[-1], body = step (float[n] h, float[n] v, float[n,2] w) => (float[n] hn, float[n] o) <int64[1] ax = {1}> {
 s = ReduceSum<keepdims=0>(w, ax) m = Mul(h, s) hn = Max(m, v) o = Sub(hn, v) }>(z, x, u) }"""
CONV = """<ir_version: 8, opset_import: ["" : 17]> agraph (float[N,1,H,W] x) => (float[a,b,c,d] y)
 <int8[1,1,2,3] w = {1, 2, 3, 4, 5, 6}, float s = {0.5}> { d = DequantizeLinear(w, s) y = Conv(x, d) }"""


def test_axes_of_scan_are_counted_from_the_first():
    model = onnx.parser.parse_model(SCAN)
    before = onnxruntime.InferenceSession(model.SerializeToString())
    count_axes_from_start(model)
    axes = {a.name: list(a.ints) for a in model.graph.node[0].attribute if a.name.endswith("axes")}
    assert axes == {"scan_input_axes": [1, 1], "scan_output_axes": [1]}
    rng = np.random.default_rng(0)
    feed = {n: rng.standard_normal(s).astype(np.float32) for n, s in (("z", (3,)), ("x", (3, 4)), ("u", (3, 4, 2)))}
    after = onnxruntime.InferenceSession(model.SerializeToString())
    for one, other in zip(before.run(None, feed), after.run(None, feed), strict=True):
        assert one.tolist() == other.tolist()


def test_a_convolution_says_the_size_of_computed_weights():
    model = onnx.parser.parse_model(CONV)
    write_kernel_shapes(model)
    assert [list(a.ints) for a in model.graph.node[1].attribute if a.name == "kernel_shape"] == [[2, 3]]


@pytest.mark.parametrize("places", [[1, 3, 5], [[0, 1], [1, 0], [1, 2]]])
def test_sparse_weights_are_written_out(places):
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[2,3] x) => (float[2,3] y) { y = Add(x, w) }')
    values = onnx.helper.make_tensor("w", 1, [3], [1.0, 2.0, 3.0])
    indices = onnx.numpy_helper.from_array(np.asarray(places, np.int64), "places")
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(values, indices, [2, 3]))
    spell_for_parsers(model, parse_target("tensorrt-rtx"))
    (dense,) = model.graph.initializer
    assert dense.name == "w"
    assert onnx.numpy_helper.to_array(dense).tolist() == [[0, 1, 0], [2, 0, 3]]
    assert not model.graph.sparse_initializer


@pytest.mark.parametrize(("target", "written"), [("tensorrt==8.6", True), ("tensorrt-rtx", False)])
def test_only_the_parser_of_8_6_needs_it(target, written):
    model = onnx.parser.parse_model(CONV)
    spell_for_parsers(model, parse_target(target))
    assert any(a.name == "kernel_shape" for a in model.graph.node[1].attribute) is written


LOOP = """<ir_version: 8, opset_import: ["" : 17]> agraph (float[N,3] x, int64 m, bool go) => (float[a,b] y) <float half = {0.5}> {
 y = Loop(m, go, x) <body = b (int64 i, bool c, float[N,3] v) => (bool c2, float[N,3] w) { w = Mul(v, half) c2 = Identity(c) }> }"""


@pytest.mark.parametrize(("target", "written"), [("tensorrt==8.6", True), ("tensorrt-rtx", False)])
def test_an_input_is_not_itself_the_condition_of_a_loop(target, written):
    model = onnx.parser.parse_model(LOOP)
    spell_for_parsers(model, parse_target(target))
    spell_for_parsers(model, parse_target(target))
    onnx.checker.check_model(model)
    assert [n.op_type for n in model.graph.node] == (["Identity", "Loop"] if written else ["Loop"])
    assert (model.graph.node[-1].input[1] == "go/condition") is written
