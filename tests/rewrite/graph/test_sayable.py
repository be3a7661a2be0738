# ruff: noqa: E501 - tables of cases stand on one line
"""Rules write in the opset of the graph, or leave the node and say why."""

import onnx
import pytest
from onnx import helper

from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, apply_rules
from trtconv.rewrite.graph.sayable import obstacle
from trtconv.rewrite.rules.missing.tensor.eye_like import RULE

EYE = """<ir_version: 7, opset_import: ["": {opset}]>
agraph (float[N,4] x) => (float[a,b] y) {{ e = EyeLike(x) y = Add(e, x) }}"""


@pytest.mark.parametrize(
    ("node", "opset", "since"),
    [
        (helper.make_node("Range", ["a", "b", "c"], ["y"]), 9, 11),
        (helper.make_node("Range", ["a", "b", "c"], ["y"]), 11, 0),
        (helper.make_node("Slice", ["x", "s", "e"], ["y"]), 9, 10),
        (helper.make_node("Unsqueeze", ["x"], ["y"], axes=[0]), 9, 0),
        (helper.make_node("Unsqueeze", ["x", "axes"], ["y"]), 12, 13),
        (helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add"), 13, 16),
        (helper.make_node("Anything", ["x"], ["y"], domain="of.mine"), 9, 0),
    ],
)
def test_the_opset_that_a_node_needs(node, opset, since):
    text, needed = obstacle([node], opset)
    assert needed == since
    assert (f"since opset {since}, and the graph has opset {opset}" in text) if since else not text


@pytest.mark.parametrize(("opset", "fires"), [(9, False), (11, True), (17, True)])
def test_a_rule_that_needs_a_newer_opset_does_not_fire(opset, fires):
    model = onnx.parser.parse_model(EYE.format(opset=opset))
    setting = RewriteSetting(
        parse_target("tensorrt-rtx"), parse_space(["N=1:3:6"]), (parse_tensor("x:float32[N,4]"),), proof=True
    )
    record = RewriteRecord()
    apply_rules(model, [RULE], setting, SilentProgress(), record)
    assert bool(record.entries) is fires
    reasons = [s.reason for s in record.skipped if s.rule == "eye-like"]
    if not fires:
        assert any("Range" in r and "onnx.version_converter" in r for r in reasons)
    assert {n.op_type for n in model.graph.node} & {"EyeLike"} == (set() if fires else {"EyeLike"})


@pytest.mark.parametrize(("dtype", "opset", "since"), [("INT64", 11, 12), ("FLOAT", 11, 0), ("INT64", 12, 0), ("BFLOAT16", 12, 13)])
def test_the_opset_that_the_type_of_a_result_needs(dtype, opset, since):
    node = onnx.helper.make_node("Max", ["a", "b"], ["y"])
    assert obstacle([node], opset, {"y": onnx.TensorProto.DataType.Value(dtype)})[1] == since
