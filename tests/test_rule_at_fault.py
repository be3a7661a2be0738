"""The rule that an error of `trtconv convert` names when no node of it is the first that differs."""

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from tests.check.test_room import SPACE, SPEC
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest, RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.pipeline.rule_at_fault import rule_at_fault
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference
from trtconv.rewrite import rewrite_model

RULES = """
from trtconv.rewrite.engine.rule import Found, Rule

def double(graph, node):
    return Found((node,), lambda g: g.op("Add", node.inputs[0], node.inputs[0]))

def {name}(graph, node):
    return Found((node,), lambda g: g.op("{op}", node.inputs[0]))

RULES = (
    Rule("doubled", "For the test.", ("Mul",), double),
    Rule("turned", "For the test.", ("Relu",), {name}),
    Rule("softened", "For the test.", ("Sin",), {name}),
)
"""


def rewritten(folder, op, text):
    """A model, its reference, and what the rules make of it without a proof."""
    model = onnx.parser.parse_model(
        f'<ir_version: 9, opset_import: ["" : 18]> g (float[N,W] x) => (float[N,W] y) <float two = {{2}}> {{ {text} }}'
    )
    set_metadata(model, SPACE_KEY, str(SPACE))
    save_model(model, folder / "model.onnx")
    run = ReferenceEvaluator(model)
    points = sample_points(SPACE, [SPEC])
    feeds = [sample_inputs([SPEC], p) for p in points]
    outputs = [{"y": np.asarray(run.run(None, feed)[0])} for feed in feeds]
    samples = [ReferenceSample(*of_point) for of_point in zip(points, feeds, outputs, strict=True)]
    reference = folder / "model.reference.safetensors"
    write_reference(reference, ReferenceInfo(points, (SPEC,), ("y",), SPACE), samples)
    (folder / "mine.py").write_text(RULES.format(op=op, name="turn"))
    request = RewriteRequest(
        folder / "model.onnx",
        folder / "model.trt.onnx",
        parse_target("tensorrt-rtx"),
        rule_files=(folder / "mine.py",),
        proof=False,
    )
    return request, rewrite_model(request, SilentProgress()), CheckRequest(request.output, reference)


@pytest.mark.parametrize(
    ("op", "text", "rule"),
    [
        ("Abs", "d = Mul(x, two) r = Relu(d) y = Identity(r)", "turned"),
        ("Relu", "d = Mul(x, two) y = Relu(d)", ""),
        ("Abs", "d = Mul(x, two) r = Relu(d) s = Sqrt(r) y = Neg(s)", "turned"),
        ("Neg", "d = Mul(x, two) r = Relu(d) y = Sin(r)", ""),
    ],
    ids=["one rule", "none is wrong", "behind others", "two rules"],
)
def test_the_rule_is_named_when_it_is_one(tmp_path, op, text, rule):
    request, result, check = rewritten(tmp_path, op, text)
    before = sorted(tmp_path.iterdir())
    if not rule and op == "Relu":
        assert rule_at_fault(request, result, check, SilentProgress()) != "turned"
        return
    assert rule_at_fault(request, result, check, SilentProgress()) == rule
    assert sorted(tmp_path.iterdir()) == before, "what is tried lies elsewhere"
