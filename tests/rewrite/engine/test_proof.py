"""Proofs of single rewrites: where they run, and what happens when none holds."""

import onnx
import pytest

from tests.rewrite.engine.test_rounds import LOOP, SCAN, packed
from tests.rewrite.harness import Case, model_of
from trtconv.core.errors import AccuracyError
from trtconv.core.ledger.records import Proof
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model
from trtconv.rewrite.engine.whole import InitialGraph


@pytest.mark.parametrize("target", ["tensorrt-rtx", "tensorrt==8.6"])
def test_when_no_rewrite_can_be_kept_the_graph_stays_or_is_refused(target, monkeypatch, tmp_path):
    """TensorRT 8.6 reads the axes of opset 18 silently and drops them: the graph must not go on so."""
    monkeypatch.setattr(InitialGraph, "compare", lambda *_: Proof(False, note="for the test"))
    model = model_of(Case("late", "a = Identity(x) y = ReduceMean(a, one)", opset=18, constants="int64[1] one = {1}"))
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "o.onnx", parse_target(target))
    if target == "tensorrt-rtx":
        result = rewrite_model(request, SilentProgress())
        assert {r.rule for r in result.rejected} == {"drop-identity"}
        assert onnx.load(str(result.model)).graph == model.graph
        return
    with pytest.raises(AccuracyError, match="differs from the original: for the test"):
        rewrite_model(request, SilentProgress())
    assert not (tmp_path / "o.onnx").exists()


def test_parts_of_a_loop_and_behind_it_are_proved_at_real_shapes():
    """ONNX's inference knows no shape there; a state is taken to have the shape that it starts with."""
    constants = "float eps = {0.1}, float[8,8,1,1] w = {" + ", ".join(["0.1"] * 64) + "}"
    record = packed(model_of(Case("loop", LOOP, constants=constants)))[1]
    by_rule = {e.rule: e for e in record.entries if e.node in ("u", "f")}
    assert set(by_rule) == {"l2norm", "drop-identity"}
    assert not record.rejected
    for entry in by_rule.values():
        assert entry.proof.passed
        assert all(shape[1] == 8 for shapes in entry.proof.shapes for _, shape in shapes)


def test_parts_of_a_scan_are_proved_at_the_shape_of_a_slice():
    case = Case("scan", SCAN, inputs="float[N,8,H,W] x, float[N,H,W] s", constants="float eps = {0.1}")
    record = packed(model_of(case))[1]
    entry = next(e for e in record.entries if e.rule == "l2norm")
    assert entry.proof.passed
    assert {len(shape) for shapes in entry.proof.shapes for name, shape in shapes if name == "slice"} == {3}
