"""Ifs whose branches give other sizes: an output is cut or padded to what the branch gives that is taken."""

import json
from importlib.util import find_spec

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.build import build_engine
from trtconv.core.model.provenance import BRANCH_SIZES_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

HEAD = """<ir_version: 8, opset_import: ["": 17]>
g (float[N,T] x) => (float[N,U] y) <int64 one = {1}, int64 fifty = {50}, float half = {0.5}, int64[1] zero = {0},
  int64[1] first = {1}, int64[1] limit = {50}, int64[1] eight = {8}> {
  shape = Shape(x)
  size = Gather(shape, one)
  short = Less(size, fifty)
  lacking = Sub(fifty, size)
  row = Unsqueeze(lacking, zero)
  zeros = Concat<axis=0>(zero, zero, zero)
  pads = Concat<axis=0>(zeros, row)
"""
LONG = "else_branch = c () => (float[N,T] d) { d = Mul(x, half) }"
CROPPED = "else_branch = c () => (float[N,50] d) { m = Mul(x, half) d = Slice(m, zero, limit, first) }"
SHORT = "then_branch = a () => (float[N,T] b) { b = Neg(x) }"
PADDED = "then_branch = a () => (float[N,50] b) { b = Pad(x, pads) }"
FLAGS = "then_branch = a () => (bool[N,50] b) { p = Pad(x, pads) b = Less(p, half) }"
LONG_FLAGS = "else_branch = c () => (bool[N,T] d) { d = Less(x, half) }"


def model_of(then, other, recorded=None):
    model = onnx.parser.parse_model(f"{HEAD} y = If(short) <{then}, {other}> }}")
    if "bool" in then:
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.BOOL
    if recorded is not None:
        model.graph.node[-1].metadata_props.add(key=BRANCH_SIZES_KEY, value=json.dumps(recorded))
    return model


def rewritten(tmp_path, model, target="tensorrt==8.6"):
    path = tmp_path / "m.onnx"
    onnx.save(model, path)
    space = parse_space(["N=1:2:3", "T=20:60:80"])
    request = RewriteRequest(path, tmp_path / "out.onnx", parse_target(target), space=space)
    return rewrite_model(request, SilentProgress())


def names_of(result):
    return [entry.rule for entry in result.entries]


CASES = {
    "padded": (PADDED, LONG),
    "cropped": (SHORT, CROPPED),
    "both": (PADDED, CROPPED.replace("limit", "eight").replace("float[N,50]", "float[N,8]")),
    "flags": (FLAGS, LONG_FLAGS),
}


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
@pytest.mark.parametrize("case", CASES)
def test_the_file_computes_what_it_did(tmp_path, case, target):
    model = model_of(*CASES[case])
    result = rewritten(tmp_path, model, target)
    assert "level-branches" in names_of(result)
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (20, 49, 50, 51, 80):
        inputs = {"x": np.random.default_rng(size).normal(size=(2, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])


@pytest.mark.skipif(find_spec("tensorrt_rtx") is None, reason="tensorrt-rtx is not installed")
@pytest.mark.parametrize("case", CASES)
def test_the_file_builds(tmp_path, case):
    rewritten(tmp_path, model_of(*CASES[case]), "tensorrt-rtx")
    request = BuildRequest(tmp_path / "out.onnx", tmp_path / "m.engine", dynamic=ShapeSpace(), backend="tensorrt-rtx")
    assert build_engine(request, SilentProgress()).engine_bytes > 1000


def test_recorded_dims_may_be_expressions(tmp_path):
    then = PADDED.replace("float[N,50]", "float[N,V]")
    recorded = {"then": [["N", "T + (50 - T)"]], "else": [["N", "T"]]}
    assert "level-branches" in names_of(rewritten(tmp_path, model_of(then, LONG, recorded)))


def test_branches_of_the_same_sizes_stay(tmp_path):
    assert "level-branches" not in names_of(rewritten(tmp_path, model_of(SHORT, LONG)))


def test_dims_without_a_meaning_are_left(tmp_path):
    then = PADDED.replace("float[N,50]", "float[N,V]")
    assert "level-branches" not in names_of(rewritten(tmp_path, model_of(then, LONG), "tensorrt-rtx"))


def test_dims_of_which_nothing_is_said_are_left(tmp_path):
    model = model_of(PADDED, LONG)
    for attribute in model.graph.node[-1].attribute:
        attribute.g.output[0].type.tensor_type.shape.dim[1].Clear()
    assert "level-branches" not in names_of(rewritten(tmp_path, model, "tensorrt-rtx"))


def test_wrong_recorded_dims_are_taken_back(tmp_path):
    recorded = {"then": [["N", 49]], "else": [["N", "T"]]}
    result = rewritten(tmp_path, model_of(PADDED, LONG, recorded), "tensorrt-rtx")
    assert "level-branches" not in names_of(result)
    assert "level-branches" in [r.rule for r in result.rejected]
