"""When the whole graph differs, a rewrite that the target cannot do without is not left out, nor its lack blamed."""

from __future__ import annotations

from typing import Any

import onnx
import pytest

from trtconv.core.errors import AccuracyError
from trtconv.core.ledger.records import Proof
from trtconv.core.progress import SilentProgress
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import parse_target
from trtconv.rewrite.engine.rounds import RewriteSetting
from trtconv.rewrite.room import RULES, _rewrite_and_compare

# TensorRT 8.6 ignores `start`, silently; the casts are a matter of taste.
MODEL = """<ir_version: 9, opset_import: ["" : 17]> g (float[N,4] x) => (int64[1] s, float[N,4] y) {
    s = Shape<start=1>(x) a = Cast<to=1>(x) b = Cast<to=1>(a) y = Relu(b) }"""


class Comparison:
    """Stands in for the proof of the whole graph: equal where `equal` says so of the rewritten graph."""

    def __init__(self, equal: Any) -> None:
        self.equal = equal

    def compare(self, model: onnx.ModelProto) -> Proof:
        passed = self.equal({n.op_type for n in model.graph.node})
        return Proof(passed, note="" if passed else "output 'y' is off")


def rewritten(equal: Any) -> Any:
    target = parse_target("tensorrt==8.6")
    chosen = [r for r in RULES if r.needed(target) and r.name in ("shape-window", "merge-casts", "drop-identity")]
    setting = RewriteSetting(target, ShapeSpace(), (), False)
    comparison: Any = Comparison(equal)
    return _rewrite_and_compare(onnx.parser.parse_model(MODEL), chosen, setting, SilentProgress(), comparison)


def test_another_rule_is_left_out_in_its_place() -> None:
    model, record, _ = rewritten(lambda ops: "Cast" in ops)
    assert {"Slice", "Cast"} <= {n.op_type for n in model.graph.node}
    assert [e.rule for e in record.entries] == ["shape-window"]
    assert {r.rule for r in record.rejected} & {"merge-casts", "drop-identity"}


def test_the_difference_is_the_cause_that_is_told() -> None:
    with pytest.raises(AccuracyError, match="the rewritten graph differs from the original: output 'y' is off") as told:
        rewritten(lambda ops: False)
    assert any("ignores start" in line for line in told.value.details)
