"""Graphs of old opsets, brought to the one that rules need."""

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.model.opset import opset_of
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.lowering.raise_opset import raise_opset

CASES = {
    "identity": ("k = EyeLike<k=1>(x) y = Add(k, x)", "float[N,T] x", 9, "EyeLike"),
    "hardmax over two axes": ("y = Hardmax<axis=1>(x)", "float[N,T,4] x", 9, "Hardmax"),
    "negative pads": ("y = Pad<pads=[0,-1,1,2],value=0.5>(x)", "float[N,T] x", 9, ""),
}


def model_of(body, inputs, opset):
    rank = inputs.count(",")
    dims = ",".join("abc"[: rank + 1])
    text = f'<ir_version: 7, opset_import: ["": {opset}]> agraph ({inputs}) => (float[{dims}] y) '
    return onnx.parser.parse_model(text + f"{{ {body} }}")


@pytest.mark.parametrize("name", CASES)
def test_a_rule_fires_in_the_opset_that_it_needs(name, tmp_path):
    body, inputs, opset, absent = CASES[name]
    model = model_of(body, inputs, opset)
    onnx.save(model, tmp_path / "m.onnx")
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "m.trt.onnx", parse_target("tensorrt==8.6"))
    result = rewrite_model(request, SilentProgress())
    after = onnx.load(str(result.model))
    assert opset_of(after) == 13
    assert result.entries
    assert absent not in {n.op_type for n in after.graph.node}
    assert any(f"it had {opset}" in n for n in result.notes)
    assert list(after.graph.input) == list(model.graph.input)
    shape = {"N": 2, "T": 5}
    x = np.random.default_rng(0).standard_normal([shape.get(d, 4) for d in inputs[6:-3].split(",")]).astype(np.float32)
    before, now = (GraphRunner(m)({"x": x})["y"] for m in (model, after))
    np.testing.assert_allclose(now, before, rtol=1e-5, atol=1e-6)


def test_a_graph_that_no_rule_wants_newer_stays(tmp_path):
    onnx.save(model_of("y = Softmax(x)", "float[N,T] x", 9), tmp_path / "m.onnx")
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "m.trt.onnx", parse_target("tensorrt==8.6"))
    assert opset_of(onnx.load(str(rewrite_model(request, SilentProgress()).model))) == 9


def test_names_dims_and_metadata_stay():
    model = model_of("q = Mul(x, x) y = Sqrt(q)", "float[N,T] x", 9)
    model.metadata_props.add(key="author", value="somebody")
    model.graph.value_info.add(name="q")
    raised = raise_opset(model, 11)
    assert opset_of(raised) == 13
    assert [list(p) for p in (raised.graph.input, raised.graph.output, raised.metadata_props)] == [
        list(p) for p in (model.graph.input, model.graph.output, model.metadata_props)
    ]
    assert list(raised.graph.value_info) == list(model.graph.value_info)


def test_where_onnx_has_no_way_there_is_none():
    model = model_of("y = Add<broadcast=1, axis=0>(x, x)", "float[N,T] x", 6)
    assert raise_opset(model, 13) is None


RESIZED = {
    "shrinks": ('y = Resize<mode="nearest">(x, s)', 10, "1,1,0.6,0.75"),
    "shrinks and grows": ('y = Resize<mode="nearest">(x, s)', 10, "1,1,0.6,1.7"),
    "beside another": ('p = Pad<pads=[0,0,-1,0,0,0,0,0]>(x) y = Resize<mode="linear">(p, s)', 10, "1,1,0.6,1.7"),
    "upsample": ('p = Pad<pads=[0,0,-1,0,0,0,0,0]>(x) y = Upsample<mode="nearest">(p, s)', 9, "1,1,1.6,2.3"),
    "linear upsample": ('p = Pad<pads=[0,0,-1,0,0,0,0,0]>(x) y = Upsample<mode="linear">(p, s)', 9, "1,1,1.6,2.0"),
}


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
@pytest.mark.parametrize("name", RESIZED)
def test_a_resize_says_what_the_old_operator_did(name, target, tmp_path):
    body, opset, scales = RESIZED[name]
    text = f'<ir_version: 6, opset_import: ["": {opset}]> agraph (float[N,2,H,W] x) => (float[a,b,c,d] y) '
    model = onnx.parser.parse_model(text + f"<float[4] s = {{{scales}}}> {{ {body} }}")
    onnx.save(model, tmp_path / "m.onnx")
    result = rewrite_model(
        RewriteRequest(tmp_path / "m.onnx", tmp_path / "m.trt.onnx", parse_target(target)), SilentProgress()
    )
    after = onnx.load(str(result.model))
    # TensorRT-RTX takes a negative pad in any opset.
    assert opset_of(after) >= 11 or (target == "tensorrt-rtx" and "Pad" in body)
    for height, width in ((5, 5), (7, 12), (16, 9)):
        x = np.random.default_rng(0).standard_normal((1, 2, height, width)).astype(np.float32)
        before, now = (GraphRunner(m)({"x": x})["y"] for m in (model, after))
        np.testing.assert_allclose(now, before, rtol=1e-5, atol=1e-6)


def test_a_nearest_resize_by_computed_scales_stays():
    text = '<ir_version: 6, opset_import: ["": 10]> agraph (float[N,2,H,W] x, float[4] s) => (float[a,b,c,d] y) '
    assert raise_opset(onnx.parser.parse_model(text + '{ y = Resize<mode="nearest">(x, s) }'), 11) is None
