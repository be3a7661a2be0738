# ruff: noqa: E501 - the text of a model stands on one line
"""Bringing a model to opset 17 for TensorRT 8.6, and refusing what 8.6 would compute wrongly."""

import numpy as np
import onnx
import onnxruntime
import pytest

from tests.rewrite.harness import SIZES, Case, _assert_equal, all_nodes, model_of
from trtconv.core.errors import UnsupportedError
from trtconv.core.model.opset import opset_of
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.lowering.spelling import write_constants_as_tensors

AXES = "int64[1] two = {2}, int64[2] hw = {2, 3}"
CASES = [
    Case("a bound beyond every axis", "m = ReduceMean(x, two) y = Slice(m, zero, end, two)", opset=18,
         constants=AXES + ", int64[1] zero = {0}, int64[1] end = {9223372036854775807}"),
    Case("mean over one axis", "y = ReduceMean(x, two)", constants=AXES, opset=18),
    Case("maximum over two axes", "y = ReduceMax<keepdims=1>(x, hw)", constants=AXES, opset=20),
    Case("no axes", "y = ReduceMin(x)", opset=18),
    Case("nothing to reduce", "y = ReduceMean<noop_with_empty_axes=1>(x)", opset=18),
    Case("squares of single elements", "y = ReduceSumSquare<noop_with_empty_axes=1>(x)", opset=18),
    Case("amounts of single elements", "a = ReduceL1<noop_with_empty_axes=1>(x) b = ReduceL2<noop_with_empty_axes=1>(x) y = Add(a, b)", opset=18),
    Case("logarithms of single elements", "a = Abs(x) y = ReduceLogSum<noop_with_empty_axes=1>(a)", opset=18),
    Case("window of a shape", "s = Shape<start=2>(x) f = Cast<to=1>(s) p = ReduceProd<keepdims=0>(f) y = Mul(x, p)", opset=20),
    Case("grid sample", "y = GridSample<mode=\"linear\">(x, g)", "float[N,8,H,W] x, float[N,5,W,2] g", opset=20),
    Case("cubic grid sample", "y = GridSample<mode=\"cubic\">(x, g)", "float[N,8,H,W] x, float[N,5,W,2] g", opset=20),
    Case("scatter that adds", "y = ScatterElements<axis=3,reduction=\"add\">(x, i, u)",
         "float[N,8,H,W] x, int64[N,8,H,5] i, float[N,8,H,5] u", opset=18, ranges={"i": (0, 12)}),
    Case("resize of two axes", "y = Resize<mode=\"linear\",axes=[2,3]>(x, , , s)", constants="int64[2] s = {9, 31}", opset=18),
    Case("gelu, cast and split", "g = Gelu(x) c = Cast<to=1,saturate=1>(g) p, q = Split<axis=1,num_outputs=2>(c) y = Concat<axis=1>(q, p)", opset=20),
    Case("volumes", "y = GridSample<mode=\"linear\">(x, g)", "float[N,8,H,W,4] x, float[N,5,W,3,3] g", "float[a,b,c,d,e] y", opset=20, ranges={"g": (-1.5, 1.5)}),
    Case("in a branch", """t = ReduceMax<keepdims=0>(x) z = Constant<value_float=0.0>() c = Greater(t, z)
         y = If(c) <then_branch = a () => (float[a,b,c,d] p) { p = ReduceMean(x, two) },
                    else_branch = b () => (float[a,b,c,d] r) { r = ReduceMax(x, two) }>""", constants=AXES, opset=18),
    Case("a local function", "y = local.f(x)", opset=18, constants=AXES,
         functions='<domain: "local", opset_import: ["" : 18]> f (a) => (c) { k = Constant<value_ints=[3]>() b = ReduceMean(a, k) c = Relu(b) }'),
]  # fmt: skip
REFUSED = [
    Case("computed axes", "s = Shape(x) a = Slice(s, one, two) z = Sub(a, a) y = ReduceMean(x, z)", constants=AXES + ", int64[1] one = {1}", opset=18),
    Case("a maximum that is scattered in part", "y = ScatterElements<axis=3,reduction=\"max\">(x, i, u)",
         "float[N,8,H,W] x, int64[N,4,H,5] i, float[N,4,H,5] u", opset=18),
    Case("aspect ratio", "y = Resize<mode=\"linear\",keep_aspect_ratio_policy=\"not_larger\">(x, , , s)", "float[2,8,H,W] x",
         constants="int64[4] s = {2,8,9,31}", opset=18),
    Case("integers over 32 bits", "s = Shape(x) k = Add(s, big) f = Cast<to=1>(k) m = ReduceSum<keepdims=0>(f) t = Identity(m) y = Mul(x, t)",
         constants="int64 big = {5000000000}"),
    Case("cubic volumes", "y = GridSample<mode=\"cubic\">(x, g)", "float[N,8,H,W,4] x, float[N,5,W,3,3] g", "float[a,b,c,d,e] y", opset=20),
]  # fmt: skip


def rewrite(case, tmp_path, target="tensorrt==8.6"):
    model = model_of(case)
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    result = rewrite_model(RewriteRequest(path, tmp_path / "m.trt.onnx", parse_target(target)), SilentProgress())
    return model, onnx.load(str(result.model)), result


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_lowered_to_opset_17(case, tmp_path):
    if "noop_with_empty_axes" in case.body and tuple(map(int, onnxruntime.__version__.split(".")[:2])) < (1, 23):
        pytest.skip("this ONNX Runtime fails on noop_with_empty_axes without axes")
    before, after, result = rewrite(case, tmp_path)
    assert opset_of(after) == 17
    assert not after.functions
    assert not result.rejected
    onnx.checker.check_model(after, full_check=True)
    _assert_equal(before, after, case, case.tolerance)
    assert result.whole is None or result.whole.passed, result.whole.note
    again = rewrite_model(
        RewriteRequest(result.model, tmp_path / "again.trt.onnx", parse_target("tensorrt==8.6")), SilentProgress()
    )
    assert not again.entries
    assert again.model.read_bytes() == result.model.read_bytes()


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_refused_with_the_node_and_no_file(case, tmp_path):
    with pytest.raises(UnsupportedError) as caught:
        rewrite(case, tmp_path)
    assert "'" in caught.value.message
    assert caught.value.hint
    assert not (tmp_path / "m.trt.onnx").exists()


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
def test_a_rank_that_moves_is_refused_everywhere(target, tmp_path):
    case = Case(
        "squeeze",
        "y = Squeeze(x)",
        "float[N,1,8] x",
        "float[a,b] y",
        edit=lambda m: m.metadata_props.add(key="trtconv.space", value="N=1:2:5"),
    )
    with pytest.raises(UnsupportedError, match="one axis less where N is 1") as caught:
        rewrite(case, tmp_path, target)
    assert "squeeze(dim)" in caught.value.hint


INT8_ENDS = [
    Case("input", "y = Cast<to=1>(x)", "int8[N,8] x", "float[a,b] y"),
    Case("output", "y = Cast<to=3>(x)", "float[N,8] x", "int8[a,b] y"),
]
QUANTISED = Case(
    "quantised", "y = DequantizeLinear(x, s, z)", "int8[N,8] x", "float[a,b] y", "float s = {0.5}, int8 z = {0}"
)


@pytest.mark.parametrize("case", INT8_ENDS, ids=str)
def test_int8_that_is_not_quantised_is_refused_by_8_6(case, tmp_path):
    with pytest.raises(UnsupportedError, match=f"the {case.name} '[xy]' is int8") as caught:
        rewrite(case, tmp_path)
    assert "int32" in caught.value.hint
    assert rewrite(case, tmp_path, "tensorrt-rtx")


def test_int8_of_a_quantised_graph_is_not_refused(tmp_path):
    assert rewrite(QUANTISED, tmp_path)


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
def test_a_layout_that_no_rule_takes_away_is_refused(target, tmp_path):
    case = Case("gru", "y = GRU<hidden_size=3,layout=1>(x, w, r)", "float[N,H,4] x, float[1,9,4] w, float[1,9,3] r")
    path = tmp_path / "m.onnx"
    path.write_bytes(model_of(case).SerializeToString())
    request = RewriteRequest(path, tmp_path / "m.trt.onnx", parse_target(target), skip=("recurrent-layout",))
    with pytest.raises(UnsupportedError, match="layout 1"):
        rewrite_model(request, SilentProgress())


def test_what_rtx_refuses_is_noted_with_the_remedy(tmp_path):
    case = Case(
        "selected", "m = Greater(x, z) n = NonZero(m) y = Abs(n)", outputs="int64[a,b] y", constants="float z = {0.0}"
    )
    assert any("fixed size" in n for n in rewrite(case, tmp_path, "tensorrt-rtx")[2].notes)
    assert not any("fixed size" in n for n in rewrite(case, tmp_path, "tensorrt==10")[2].notes)


def test_other_targets_keep_the_opset(tmp_path):
    _, after, result = rewrite(CASES[0], tmp_path, "tensorrt-rtx")
    assert opset_of(after) == 18
    assert not result.entries


def test_an_old_opset_is_left_alone(tmp_path):
    case = Case("old", "y = ReduceMean<axes=[2]>(x)", opset=13)
    _, after, result = rewrite(case, tmp_path)
    assert opset_of(after) == 13
    assert not result.entries


def test_a_call_gives_its_origin_to_the_nodes_of_its_body(tmp_path):
    case = next(c for c in CASES if c.functions)
    model = model_of(case)
    model.graph.node[0].metadata_props.add(key="trtconv.module", value="head.norm")
    path = tmp_path / "m.onnx"
    path.write_bytes(model.SerializeToString())
    result = rewrite_model(
        RewriteRequest(path, tmp_path / "m.trt.onnx", parse_target("tensorrt==11")), SilentProgress()
    )
    after = onnx.load(str(result.model))
    assert not after.functions
    assert result.notes
    assert {p.value for n in all_nodes(after.graph) for p in n.metadata_props if p.key == "trtconv.module"} == {
        "head.norm"
    }
    assert np.all([len(n.output) for n in after.graph.node])
    assert SIZES


def test_constants_of_numbers_are_written_as_tensors():
    body = "k = Constant<value_ints=[3]>() p = Unsqueeze(x, k)"
    case = Case("forms", f"""i = Constant<value_int=1>() f = Constant<value_float=0.5>() v = Constant<value_floats=[0.25, 2.0]>()
        s = Shape(x) n = Gather(s, i) z = Constant<value_int=8>() c = Equal(n, z) m = Mul(x, f) q = ReduceSum(v) r = Mul(m, q)
        t = If(c) <then_branch = a () => (float[a,b,c,e,d] p) {{ {body} }}, else_branch = b () => (float[a,b,c,e,d] p) {{ {body} }}>
        k = Constant<value_ints=[3]>() u = Squeeze(t, k) y = Add(u, r)""", opset=17)  # fmt: skip
    before, after = model_of(case), model_of(case)
    write_constants_as_tensors(after)
    written = [a.name for n in all_nodes(after.graph) if n.op_type == "Constant" for a in n.attribute]
    assert written == ["value"] * 7
    _assert_equal(before, after, case, case.tolerance)


def test_a_file_that_no_rule_touches_has_its_axes_in_tensors(tmp_path):
    path, output = tmp_path / "model.onnx", tmp_path / "m.trt.onnx"
    onnx.save(model_of(Case("axes", "k = Constant<value_ints=[3]>() y = Unsqueeze(x, k)", outputs="float[a,b,c,e,d] y", opset=13)), path)
    rewrite_model(RewriteRequest(path, output, parse_target("tensorrt==8.6")), SilentProgress())
    (constant,) = (n for n in onnx.load(output).graph.node if n.op_type == "Constant")
    assert [a.name for a in constant.attribute] == ["value"]
    np.testing.assert_array_equal(onnx.numpy_helper.to_array(constant.attribute[0].t), [3])
