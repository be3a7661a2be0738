# ruff: noqa: E501 - the text of a model stands on one line
"""Forms that parsers do not read."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import external_data_helper

from trtconv.core.model.bodies import walk_nodes
from trtconv.core.targets import parse_target
from trtconv.rewrite.lowering.spelling import (
    count_axes_from_start,
    gather_infinities,
    spell_for_parsers,
    write_kernel_shapes,
)

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

INFINITE = {
    "scalars": 'agraph (float[N,6] x, bool[N,6] m) => (float[a,b] y, float[c,d] z) <float inf = {-inf}> { y = Where(m, x, inf) z0 = Constant<value_float = inf>() z = Where(m, z0, x) }',
    "one element of two axes": 'agraph (float[N,6] x, bool[N,6] m) => (float[a,b] y) <float[1,1] inf = {-inf}> { y = Where(m, x, inf) }',
    "half precision": 'agraph (float16[N,6] x, bool[N,6] m) => (float16[a,b] y) <float16 inf = {64512}> { y = Where(m, x, inf) }',
    "a filled tensor": 'agraph (float[N,6] x, bool[N,6] m) => (float[a,b] y) { s = Shape(x) k = ConstantOfShape<value = float[1] {-inf}>(s) y = Where(m, x, k) }',
    "in a body": 'agraph (float[N,6] x, int64 t, bool go) => (float[a,b] y) <float inf = {-inf}> { y = Loop(t, go, x) <body = b (int64 i, bool c, float[N,6] v) => (bool c2, float[N,6] w) { p = Constant<value_float = inf>() q = Less(v, p) r = Where(q, v, inf) w = Max(r, v) c2 = Identity(c) }> }',
    "a name of two branches": 'agraph (float[N,6] x, bool[N,6] m, bool go) => (float[a,b] y, float[c,d] z) <int64[4] p = {0, 1, 0, 1}, float one = {1.0}> { y = If(go) <then_branch = t () => (float[e,f] r) <float c = {-inf}> { w = Where(m, x, c) r = Pad(w, p, c) }, else_branch = s () => (float[g,h] r2) <float c = {2.0}> { v = Pad(x, p, c) r2 = Clip(v, c) }> z = Mul(x, one) }',
    "beside Pad": 'agraph (float[N,6] x, bool[N,6] m) => (float[a,b] y, float[c,d] z) <float inf = {-inf}, int64[4] p = {0, 1, 0, 1}> { y = Where(m, x, inf) z = Pad(x, p, inf) }',
}  # fmt: skip


def run_at_three(model):
    rng = np.random.default_rng(0)
    feed = {}
    for value in model.graph.input:
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        numbers = rng.standard_normal([d.dim_value or 3 for d in value.type.tensor_type.shape.dim])
        feed[value.name] = np.asarray(numbers > 0 if dtype.kind == "b" else numbers if dtype.kind == "f" else 2, dtype)
    return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feed)


@pytest.mark.parametrize("text", INFINITE.values(), ids=INFINITE)
def test_infinite_constants_of_one_element_are_computed(text):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    expected = run_at_three(model)
    gather_infinities(model)
    onnx.checker.check_model(model)
    for one, other in zip(expected, run_at_three(model), strict=True):
        assert one.tolist() == other.tolist()
    others = [n for n in walk_nodes(model.graph.node) if n.op_type not in ("Pad", "Gather")]
    infinite = {t.name for t in model.graph.initializer if np.isinf(onnx.numpy_helper.to_array(t)).any()}
    assert not {name for node in others for name in node.input} & infinite
    assert not any(n.op_type in ("Constant", "ConstantOfShape") for n in walk_nodes(model.graph.node))
    text = onnx.printer.to_text(model)
    gather_infinities(model)
    assert onnx.printer.to_text(model) == text


@pytest.mark.parametrize("text", [
    "g (float[N,6] x) => (float[a,b] y) <float[2,1] inf = {-inf, inf}, float[6] w = {-inf, -inf, 0, 0, 0, 0}> { v = Add(x, w) y = Concat<axis=0>(v, x) }",
    "g (float[N,6] x, float inf) => (float[a,b] y) <float inf = {-inf}> { y = Max(x, inf) }",
    "g (float[N,6] x) => (float[a,b] y) <float inf = {-inf}, int64[4] p = {0, 1, 0, 1}> { y = Pad(x, p, inf) }",
    "g (float[N,6] x) => (float[a,b] y) <double inf = {-inf}> { d = Cast<to=11>(x) e = Max(d, inf) y = Cast<to=1>(e) }",
])  # fmt: skip
def test_other_constants_are_left(text):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    before = model.SerializeToString(deterministic=True)
    gather_infinities(model)
    assert model.SerializeToString(deterministic=True) == before


def test_weights_on_disk_are_not_read():
    model = onnx.parser.parse_model('<ir_version: 8, opset_import: ["" : 17]> g (float[N] x) => (float[a] y) <float w = {-inf}> { y = Max(x, w) }')
    (tensor,) = model.graph.initializer
    tensor.CopyFrom(onnx.numpy_helper.from_array(onnx.numpy_helper.to_array(tensor), "w"))
    external_data_helper.set_external_data(tensor, "absent.data")
    tensor.ClearField("raw_data")
    gather_infinities(model)
    spell_for_parsers(model, parse_target("tensorrt==8.6"))
    assert [n.op_type for n in model.graph.node] == ["Max"]


@pytest.mark.parametrize(("call", "operator"), [
    ("Clip(x, lo, inf)", "Max"), ("Clip(x, ninf, lo)", "Min"), ("Clip(x, ninf, inf)", "Identity"), ("Clip(x, lo)", "Clip"),
    ("Clip(x, ninf)", "Clip"),
])  # fmt: skip
def test_a_bound_that_is_infinite_is_left_out(call, operator):
    text = f"g (float[N,6] x) => (float[a,b] y) <float lo = {{0.25}}, float inf = {{inf}}, float ninf = {{-inf}}> {{ y = {call} }}"
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {text}')
    expected = run_at_three(model)
    spell_for_parsers(model, parse_target("tensorrt==8.6"))
    assert [n.op_type for n in model.graph.node] == [operator]
    assert run_at_three(model)[0].tolist() == expected[0].tolist()
