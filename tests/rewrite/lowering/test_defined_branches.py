"""Branches that are not defined where they are not taken: they get the sizes of a point at which they are."""

from importlib.util import find_spec

import numpy as np
import onnx
import pytest

from tests.rewrite.lowering.test_branch_sizes import rewrite_saved
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.build import build_engine
from trtconv.core.model.provenance import BRANCH_SIZES_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace

HEAD = """<ir_version: 8, opset_import: ["": 18]>
g (float[N,T] x) => (float[N,U] y) <int64 one = {{1}}, int64 seven = {{7}}, int64[4] four = {{0, 3, 0, 4}},
  int64[1] zeros = {{0}}, int64[1] ones = {{1}}, float half = {{0.5}}> {{
  shape = Shape(x)
  size = Gather(shape, one)
  long = {condition}
  y = If(long) <then_branch = a () => (float[N,V] b) {{ {then} }}, else_branch = c () => (float[N,T] d) {{ {other} }}>
}}"""
LONG = "Less(seven, size)"
MIRRORED = "b = Pad<mode=\"reflect\">(x, four)"
# Of the size there is a half, and a view of as many columns.
VIEWED = """two = Constant<value_int = 2>() n = Div(size, two) m = Mul(n, two) row = Unsqueeze(m, zeros)
    whole = Slice(x, zeros, row, ones) first = Constant<value_ints = [-1]>() columns = Unsqueeze(n, zeros)
    view = Concat<axis=0>(first, columns) v = Reshape(whole, view) few = Constant<value_ints = [3]>()
    axis = Constant<value_ints = [1]>() b = Slice(v, few, columns, axis)"""
SAME = "d = Mul(x, half)"
CASES = {
    "a mirrored pad": (LONG, MIRRORED, SAME, {"then": [["N", "T + 7"]], "else": [["N", "T"]]}),
    "taken below": ("LessOrEqual(size, seven)", SAME.replace("d =", "b ="), MIRRORED.replace("b =", "d ="),
                    {"then": [["N", "T"]], "else": [["N", "T + 7"]]}),
}  # fmt: skip


def model_of(condition, then, other, recorded):
    model = onnx.parser.parse_model(HEAD.format(condition=condition, then=then, other=other))
    if recorded is not None:
        model.graph.node[-1].metadata_props.add(key=BRANCH_SIZES_KEY, value=str(recorded).replace("'", '"'))
    return model


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
@pytest.mark.parametrize("case", CASES)
def test_both_are_computed_at_every_size(tmp_path, case, target):
    model = model_of(*CASES[case])
    result = rewrite_saved(tmp_path, model, target, "N=1:2:3 T=1:20:40")
    (entry,) = [e for e in result.entries if e.rule == "level-branches"]
    assert "gets the sizes of" in entry.note
    written = onnx.load(tmp_path / "out.onnx")
    assert "If" not in [n.op_type for n in written.graph.node]
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (1, 2, 7, 8, 9, 40):
        inputs = {"x": np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])


@pytest.mark.skipif(find_spec("tensorrt_rtx") is None, reason="tensorrt-rtx is not installed")
@pytest.mark.parametrize("case", CASES)
def test_the_file_builds(tmp_path, case):
    rewrite_saved(tmp_path, model_of(*CASES[case]), "tensorrt-rtx", "N=1:2:3 T=1:20:40")
    request = BuildRequest(tmp_path / "out.onnx", tmp_path / "m.engine", dynamic=ShapeSpace(), backend="tensorrt-rtx")
    assert build_engine(request, SilentProgress()).engine_bytes > 1000


def test_an_if_whose_branch_computes_much_stays_and_is_defined(tmp_path):
    heavy = MIRRORED.replace("b =", "p =") + " b = Exp(p)"
    model = model_of(LONG, heavy, SAME, CASES["a mirrored pad"][3])
    rewrite_saved(tmp_path, model, "tensorrt==8.6", "N=1:2:3 T=1:20:40")
    written = onnx.load(tmp_path / "out.onnx")
    assert "If" in [n.op_type for n in written.graph.node]
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (1, 7, 8, 40):
        inputs = {"x": np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])


def test_sizes_that_a_branch_reads_are_those_of_its_point(tmp_path):
    """The numbers of the size 4 would cut a view of 20 columns to other sizes."""
    recorded = {"then": [["2*N", "T // 2 - 3"]], "else": [["N", "T"]]}
    model = model_of(LONG, VIEWED, SAME, recorded)
    rewrite_saved(tmp_path, model, "tensorrt-rtx", "N=1:2:3 T=1:20:40")
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (1, 7, 8, 40):
        inputs = {"x": np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])


INNER = """most = Constant<value_int = 20>() longer = Less(most, size)
    z = If(longer) <then_branch = e () => (float[N,P] f) { wide = Constant<value_ints = [0, 4, 0, 3]>()
    f = Pad<mode="reflect">(x, wide) }, else_branch = g () => (float[N,Q] h) { h = Pad<mode="reflect">(x, four) }>
    b = Neg(z)"""


def test_an_if_inside_of_a_branch(tmp_path):
    model = model_of(LONG, INNER, SAME, CASES["a mirrored pad"][3])
    inner = next(n for a in model.graph.node[-1].attribute for n in a.g.node if n.op_type == "If")
    inner.metadata_props.add(key=BRANCH_SIZES_KEY, value='{"then": [["N", "T + 7"]], "else": [["N", "T + 7"]]}')
    rewrite_saved(tmp_path, model, "tensorrt-rtx", "N=1:2:3 T=1:20:40")
    assert "If" not in [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node]
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (1, 2, 7, 8, 20, 21, 40):
        inputs = {"x": np.random.default_rng(size).normal(size=(3, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])
