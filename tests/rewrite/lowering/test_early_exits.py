# ruff: noqa: E501 - the text of a model stands on one line
"""What loops collect until a condition ends them."""

import numpy as np
import onnx
import pytest

from trtconv.backends.onnxruntime.graph_runner import GraphRunner
from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

HEAD = '<ir_version: 8, opset_import: ["" : 17]> agraph (float[T] x) => (float s, float[b] y) <bool yes = {1}, float z = {0.0}, float lim = {1.5}, int64 zero = {0}> '
LOOP = "{{ sh = Shape(x) t = Gather(sh, zero) s, y = Loop<body = step (int64 i, bool c, float a) => (bool k, float b, float o) {{ v = Gather(x, i) b = Add(a, v) {condition} o = Mul(b, v) }}>(t, yes, z) }}"
EARLY, WHOLE = "k = Less(b, lim)", "k = Identity(c)"


def rewritten(condition, tmp_path, target):
    model = onnx.parser.parse_model(HEAD + LOOP.format(condition=condition))
    onnx.save(model, tmp_path / "m.onnx")
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "m.trt.onnx", parse_target(target))
    result = rewrite_model(request, SilentProgress())
    return model, onnx.load(str(result.model)), result


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt==10"])
def test_the_rows_of_rounds_that_were_not_run_are_cut(tmp_path, target):
    model, after, result = rewritten(EARLY, tmp_path, target)
    assert [e.rule for e in result.entries] == ["early-exit"]
    assert result.whole.passed
    # TensorRT gives the loop's own rows all of the trip count: they are cut by the number of rounds.
    assert [n.op_type for n in after.graph.node][-3:] == ["NonZero", "Squeeze", "Gather"]
    for x in ([1.0, 1.0, 1.0, 1.0], [0.1, 0.2, 0.3], [2.0]):
        values = {"x": np.asarray(x, np.float32)}
        before, now = GraphRunner(model)(values), GraphRunner(after)(values)
        assert [before[n].tolist() for n in "sy"] == [now[n].tolist() for n in "sy"]
    assert now["y"].shape == (1,)


def test_a_loop_of_all_rounds_stays(tmp_path):
    _, after, result = rewritten(WHOLE, tmp_path, "tensorrt==8.6")
    assert not result.entries
    assert "NonZero" not in {n.op_type for n in after.graph.node}


@pytest.mark.parametrize("go", [True, False])
def test_a_loop_that_may_not_begin_is_cut_too(tmp_path, go):
    model = onnx.parser.parse_model((HEAD + LOOP.format(condition=WHOLE)).replace("float[T] x)", "float[T] x, bool go)").replace("(t, yes, z)", "(t, go, z)"))
    onnx.save(model, tmp_path / "m.onnx")
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "m.trt.onnx", parse_target("tensorrt==8.6"))
    result = rewrite_model(request, SilentProgress())
    assert [e.rule for e in result.entries] == ["early-exit"]
    values = {"x": np.asarray([1.0, 0.5, 2.0], np.float32), "go": np.asarray(go)}
    before, now = GraphRunner(model)(values), GraphRunner(onnx.load(str(result.model)))(values)
    assert [before[n].tolist() for n in "sy"] == [now[n].tolist() for n in "sy"]
    assert now["y"].shape == (3 * go,)


def test_rtx_has_nothing_to_cut_with(tmp_path):
    with pytest.raises(UnsupportedError, match="'y' as many rows as its Loop may take rounds") as refusal:
        rewritten(EARLY, tmp_path, "tensorrt-rtx")
    assert "full length" in refusal.value.hint
