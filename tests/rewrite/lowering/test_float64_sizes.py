"""Decisions by sizes in FP64 that FP32 takes otherwise are refused before an engine is built."""

from __future__ import annotations

import onnx
import pytest

from trtconv.core.errors import UnsupportedError
from trtconv.core.model.provenance import INPUTS_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

GRAPH = """<ir_version: 8, opset_import: ["" : 17]>
agraph (float[N,T] x) => (float[a,b] y) <int64 one = {{1}}, double tenth = {{0.1}}, double k = {{{constant}}}> {{
  s = Shape(x) t = Gather(s, one) w = Cast<to=11>(t) p = Mul(w, tenth) {body}
}}"""
BY_TRUTH = """c = {question}(p, k) y = If(c) <
  then_branch = one_side () => (float[q,r] o) {{ o = Add(x, x) }},
  else_branch = other () => (float[u,v] n) {{ n = Neg(x) }}
>"""
BY_NUMBER = "f = Floor(p) i = Cast<to=7>(f) j = Cast<to=1>(i) y = Mul(x, j)"


def rewritten(tmp_path, body, constant, target):
    model = onnx.parser.parse_model(GRAPH.format(body=body, constant=constant))
    model.metadata_props.add(key=SPACE_KEY, value="N=1:1:2 T=1:50:700")
    model.metadata_props.add(key=INPUTS_KEY, value="x:float32[N,T]")
    path = tmp_path / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return rewrite_model(RewriteRequest(path, tmp_path / "model.trt.onnx", parse_target(target)), SilentProgress())


@pytest.mark.parametrize("target", ["tensorrt==8.6", "tensorrt-rtx"])
@pytest.mark.parametrize(("question", "constant", "at"), [("Equal", "0.3", "T=3"), ("Greater", "0.3", "T=3")])
def test_a_truth_that_turns_is_refused_with_its_size(tmp_path, question, constant, at, target):
    with pytest.raises(UnsupportedError, match=rf"follows from sizes and is another one then, at {at}"):
        rewritten(tmp_path, BY_TRUTH.format(question=question), constant, target)


def test_one_that_does_not_turn_is_taken(tmp_path):
    notes = rewritten(tmp_path, BY_TRUTH.format(question="Less"), "9.95", "tensorrt-rtx").notes
    assert any("FP32 instead of FP64" in note for note in notes)


def test_whole_numbers_that_are_the_same_are_taken(tmp_path):
    assert rewritten(tmp_path, BY_NUMBER, "0.0", "tensorrt-rtx").notes
