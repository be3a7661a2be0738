"""Ifs whose branches give other sizes: an output is cut or padded to what the branch gives that is taken."""

import json
from importlib.util import find_spec

import numpy as np
import onnx
import pytest

from tests.rewrite.lowering.test_branch_sizes import HEAD, rewrite_saved
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.build import build_engine
from trtconv.core.model.provenance import BRANCH_SIZES_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.rewrite.lowering.level_branches import _Leveling

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
    result = rewrite_saved(tmp_path, model, target)
    assert "level-branches" in names_of(result)
    before, after = OnnxRuntimeRunner(model.SerializeToString()), OnnxRuntimeRunner(tmp_path / "out.onnx")
    for size in (20, 49, 50, 51, 80):
        inputs = {"x": np.random.default_rng(size).normal(size=(2, size)).astype(np.float32)}
        np.testing.assert_array_equal(after(inputs)["y"], before(inputs)["y"])


def two_ifs():
    again = "y = If(short) <then_branch = e () => (float[N,T] f) { f = Exp(x) }, "
    again += "else_branch = g () => (float[N,50] h) { i = Mul(x, half) h = Slice(i, zero, limit, first) }>"
    first = PADDED.replace("b = Pad(x, pads)", "c = Exp(x) b = Pad(c, pads)")
    model = onnx.parser.parse_model(f"{HEAD} z = If(short) <{first}, {LONG}> {again} }}")
    model.graph.output.append(onnx.helper.make_tensor_value_info("z", 1, ["N", "V"]))
    return model


def test_each_of_several_ifs_is_leveled(tmp_path):
    result = rewrite_saved(tmp_path, two_ifs(), "tensorrt-rtx")
    assert names_of(result).count("level-branches") == 2
    written = onnx.load(tmp_path / "out.onnx").graph
    branches = [a.g for n in written.node if n.op_type == "If" for a in n.attribute]
    assert len(branches) == 4
    assert all(any(n.op_type == "Pad" for n in branch.node) for branch in branches)


def test_an_if_that_stays_leaves_the_next_ones_names_free(tmp_path, monkeypatch):
    leveled = _Leveling.level

    def level(leveling, uneven):
        if "z" not in leveling.outputs:
            return leveled(leveling, uneven)
        leveling.sizes(0)
        leveling.put_in_front()
        return None

    monkeypatch.setattr(_Leveling, "level", level)
    result = rewrite_saved(tmp_path, two_ifs(), "tensorrt-rtx")
    assert names_of(result).count("level-branches") == 1
    outputs = [o for n in onnx.load(tmp_path / "out.onnx").graph.node for o in n.output]
    assert len(outputs) == len(set(outputs))


HEAVY = CROPPED.replace("m = Mul(x, half)", "e = Exp(x) m = Mul(e, half)")


@pytest.mark.parametrize(
    ("then", "other", "remaining"),
    [(SHORT, CROPPED, 0), (SHORT, HEAVY, 1), (FLAGS, LONG_FLAGS, 1)],
    ids=["moves values", "computes much", "gives booleans"],
)
def test_branches_that_cost_little_are_both_computed(tmp_path, then, other, remaining):
    result = rewrite_saved(tmp_path, model_of(then, other), "tensorrt-rtx")
    (entry,) = [e for e in result.entries if e.rule == "level-branches"]
    nodes = [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node]
    assert nodes.count("If") == remaining
    assert ("Where" in nodes) is not bool(remaining)
    assert ("a Where takes one" in entry.note) is not bool(remaining)


def test_a_division_that_a_branch_guards_stays_in_it(tmp_path):
    body = "r = Div(row, row) s = Mul(r, row) p = Concat<axis=0>(zeros, s) b = Pad(x, p)"
    guarded = f"then_branch = a () => (float[N,50] b) {{ {body} }}"
    rewrite_saved(tmp_path, model_of(guarded, LONG), "tensorrt-rtx")
    assert [n.op_type for n in onnx.load(tmp_path / "out.onnx").graph.node].count("If") == 1


@pytest.mark.skipif(find_spec("tensorrt_rtx") is None, reason="tensorrt-rtx is not installed")
@pytest.mark.parametrize("case", CASES)
def test_the_file_builds(tmp_path, case):
    rewrite_saved(tmp_path, model_of(*CASES[case]), "tensorrt-rtx")
    request = BuildRequest(tmp_path / "out.onnx", tmp_path / "m.engine", dynamic=ShapeSpace(), backend="tensorrt-rtx")
    assert build_engine(request, SilentProgress()).engine_bytes > 1000


def test_recorded_dims_may_be_expressions(tmp_path):
    then = PADDED.replace("float[N,50]", "float[N,V]")
    recorded = {"then": [["N", "T + (50 - T)"]], "else": [["N", "T"]]}
    assert "level-branches" in names_of(rewrite_saved(tmp_path, model_of(then, LONG, recorded), "tensorrt==8.6"))


def test_branches_of_the_same_sizes_stay(tmp_path):
    assert "level-branches" not in names_of(rewrite_saved(tmp_path, model_of(SHORT, LONG), "tensorrt==8.6"))


def test_dims_without_a_meaning_are_left(tmp_path):
    then = PADDED.replace("float[N,50]", "float[N,V]")
    assert "level-branches" not in names_of(rewrite_saved(tmp_path, model_of(then, LONG), "tensorrt-rtx"))


def test_dims_of_which_nothing_is_said_are_left(tmp_path):
    model = model_of(PADDED, LONG)
    for attribute in model.graph.node[-1].attribute:
        attribute.g.output[0].type.tensor_type.shape.dim[1].Clear()
    assert "level-branches" not in names_of(rewrite_saved(tmp_path, model, "tensorrt-rtx"))


def test_wrong_recorded_dims_are_taken_back(tmp_path):
    recorded = {"then": [["N", 49]], "else": [["N", "T"]]}
    result = rewrite_saved(tmp_path, model_of(PADDED, LONG, recorded), "tensorrt-rtx")
    assert "level-branches" not in names_of(result)
    assert "level-branches" in [r.rule for r in result.rejected]
