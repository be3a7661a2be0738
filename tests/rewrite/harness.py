"""The harness that every rule's test goes through.

A case is a small ONNX model in text, with the sizes at which it is run. The harness wants: the rule fires as often as
the case says and no other way; the model after is valid ONNX; its outputs equal those before at three sizes or more
(one odd) with random and zero values; a second run changes nothing, to the byte; names, dims and doc strings of the
signature are kept; new nodes say which rule made them. At the first size the probes of the inputs' types are compared
too (ties, small numbers, edges, masks, one infinity). A near miss has to stay as it is, to the byte.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser

from trtconv.backends.onnxruntime.graph_runner import GraphRunner, open_model
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.provenance import RULE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.targets import parse_target
from trtconv.core.tensors import TensorSpec
from trtconv.core.tolerance import Tolerance
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.probes.values import INFINITE_KINDS, probe_kinds, probe_values
from trtconv.proof.proving import compare_graphs
from trtconv.rewrite.engine.points import model_space
from trtconv.rewrite.engine.proof import RULE_KINDS
from trtconv.rewrite.engine.rounds import RewriteRecord, RewriteSetting, apply_rules
from trtconv.rewrite.engine.rule import Rule
from trtconv.rewrite.graph.fragment import with_plugin_bodies

SIZES = ({"N": 2, "H": 16, "W": 24}, {"N": 1, "H": 17, "W": 23}, {"N": 3, "H": 31, "W": 13})
IMAGE = "float[N,8,H,W] x"


@dataclass(frozen=True)
class Case:
    """One model and what the rule has to do with it.

    `fires` is how many rewrites are expected, `absent` and `present` are op types that must be absent or present after.
    `ranges` bounds the values of inputs. `skip` is a part of the reason that a near miss has to give.
    """

    name: str
    body: str
    inputs: str = IMAGE
    outputs: str = "float[a,b,c,d] y"
    constants: str = ""
    opset: int = 17
    fires: int = 1
    absent: tuple[str, ...] = ()
    present: tuple[str, ...] = ()
    sizes: tuple[Mapping[str, int], ...] = SIZES
    target: str = "tensorrt-rtx"
    ranges: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    skip: str = ""
    tolerance: Tolerance = field(default_factory=Tolerance)
    edit: Callable[[onnx.ModelProto], None] | None = None
    functions: str = ""

    def __str__(self) -> str:
        return self.name


def model_of(case: Case) -> onnx.ModelProto:
    """The case's model, with a shape space like the one that export records."""
    domains = ', "trtconv" : 1, "local" : 1' if "trtconv." in case.body or "local." in case.body else ""
    domains += ', "com.microsoft" : 1' if "com.microsoft." in case.body else ""
    constants = f"<{case.constants}>" if case.constants else ""
    text = f"""<ir_version: 8, opset_import: ["" : {case.opset}{domains}]>
g ({case.inputs}) => ({case.outputs}) {constants} {{ {case.body} }}
{case.functions}"""
    model = parser.parse_model(text)
    if case.edit:
        case.edit(model)
    return with_plugin_bodies(model)


def skip_newer(case: Case) -> None:
    """Skip a case whose opset the installed onnx does not know (1.17 ends at 22)."""
    if case.opset > onnx.defs.onnx_opset_version():
        pytest.skip(f"onnx {onnx.__version__} has no opset {case.opset}")


def apply(model: onnx.ModelProto, rules: tuple[Rule, ...], target: str, *, proof: bool = True) -> RewriteRecord:
    """Apply rules in place and return the record."""
    space, specs = model_space(model)
    record = RewriteRecord()
    apply_rules(model, rules, RewriteSetting(parse_target(target), space, specs, proof), SilentProgress(), record)
    return record


def check_case(rule: Rule, case: Case, *, proof: bool = True) -> onnx.ModelProto:
    """Run a case that has to fire; returns the model after. Raises AssertionError."""
    assert len({tuple(s.items()) for s in case.sizes}) >= 3, "a case has three sizes at least"
    assert any(v % 2 and v > 1 for s in case.sizes for v in s.values()), "one of the sizes is odd"
    skip_newer(case)
    before = model_of(case)
    after = onnx.ModelProto()
    after.CopyFrom(before)
    assert rule.needed(parse_target(case.target)), f"{rule.name} is not needed for {case.target}"
    record = apply(after, (rule,), case.target, proof=proof)
    assert not record.rejected, record.rejected[0].reason
    assert [e.rule for e in record.entries] == [rule.name] * case.fires, (
        f"fired {len(record.entries)} times, expected {case.fires}; skipped: {[s.reason for s in record.skipped]}"
    )
    assert all(e.proof.passed or not proof for e in record.entries)
    _assert_ops(after, case)
    _assert_kept(before, after)
    if not case.functions and "trtconv." not in case.body:
        onnx.checker.check_model(after, full_check=True)
    _assert_equal(before, after, case, case.tolerance.over(rule.tolerance))
    _assert_equal_at_probes(before, after, case, rule)
    _assert_stable(after, rule, case.target)
    return after


def check_near_miss(rule: Rule, case: Case) -> None:
    """Run a case that must not fire, and give the reason that the case wants."""
    skip_newer(case)
    model = model_of(case)
    before = model.SerializeToString(deterministic=True)
    record = apply(model, (rule,), case.target)
    assert not record.entries, f"fired at {[e.node for e in record.entries]}"
    assert not record.rejected, f"only the proof stopped it: {record.rejected[0].reason}"
    assert model.SerializeToString(deterministic=True) == before
    reasons = [s.reason for s in record.skipped]
    assert not case.skip or any(case.skip in r for r in reasons), f"reasons: {reasons}"


def _assert_ops(model: onnx.ModelProto, case: Case) -> None:
    ops = {n.op_type for n in all_nodes(model.graph)}
    assert not ops & set(case.absent), f"still there: {ops & set(case.absent)}"
    assert set(case.present) <= ops, f"missing: {set(case.present) - ops}"


def all_nodes(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Nodes of a graph and of the bodies in it."""
    return list(walk_nodes(graph.node))


def _assert_kept(before: onnx.ModelProto, after: onnx.ModelProto) -> None:
    assert list(before.graph.input) == list(after.graph.input)
    assert list(before.graph.output) == list(after.graph.output)
    assert list(before.metadata_props) == list(after.metadata_props)
    assert before.doc_string == after.doc_string
    names = {n.name for n in before.graph.node} | {o for n in before.graph.node for o in n.output}
    old = {n.SerializeToString(deterministic=True) for n in all_nodes(before.graph)}
    for node in after.graph.node:
        if node.SerializeToString(deterministic=True) not in old and node.name not in names:
            assert RULE_KEY in {p.key for p in node.metadata_props}, f"{node.name} does not say its rule"


def _assert_equal(before: onnx.ModelProto, after: onnx.ModelProto, case: Case, limits: Tolerance) -> None:
    runs = runner(before), runner(after)
    _, specs = model_space(before)
    for sizes in case.sizes:
        for kind in ("random", "zeros"):
            feed = {s.name: feed_of(s, sizes, kind, case.ranges.get(s.name)) for s in specs}
            expected = runs[0](feed)
            results = compare_graphs(f"{sizes} {kind}", runs[0], feed, expected, runs[1](feed), limits)
            failure = first_failure(results)
            assert failure is None, describe_failure(failure) if failure else ""


def _assert_equal_at_probes(before: onnx.ModelProto, after: onnx.ModelProto, case: Case, rule: Rule) -> None:
    runs = runner(before), runner(after)
    if not all(isinstance(r, GraphRunner) for r in runs):
        return
    _, specs = model_space(before)
    bounds = {s.name: case.ranges.get(s.name, (0, 5) if s.dtype.kind == "int" else None) for s in specs}
    for kind in probe_kinds(((s.dtype.kind, bounds[s.name]) for s in specs), RULE_KINDS):
        if kind in INFINITE_KINDS and not rule.keeps_infinities:
            continue
        random = {s.name: feed_of(s, case.sizes[0], "random", case.ranges.get(s.name)) for s in specs}
        feed = {name: probe_values(kind, value, bounds[name]) for name, value in random.items()}
        expected = runs[0](feed)
        if kind in INFINITE_KINDS and any(np.isnan(v).any() for v in expected.values() if v.dtype.kind == "f"):
            continue
        tolerance = case.tolerance.over(rule.tolerance)
        failure = first_failure(compare_graphs(kind, runs[0], feed, expected, runs[1](feed), tolerance))
        assert failure is None, describe_failure(failure) if failure else ""


def runner(model: onnx.ModelProto) -> Any:
    """ONNX Runtime, or the reference evaluator where it lacks an op."""
    return open_model(model)[0]


def feed_of(spec: TensorSpec, sizes: Mapping[str, int], kind: str, bounds: tuple[float, float] | None) -> Any:
    """Values of one input."""
    rng = np.random.default_rng(len(spec.name) + sum(sizes.values()))
    shape, dtype = spec.shape(sizes), spec.dtype.numpy()
    if kind == "zeros":
        return np.full(shape, bounds[0] if bounds and bounds[0] > 0 else 0).astype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, shape).astype(dtype)
    if dtype.kind in "iu":
        low, high = bounds or (0, 5)
        return rng.integers(int(low), int(high) + 1, shape).astype(dtype)
    return (rng.uniform(*bounds, shape) if bounds else rng.standard_normal(shape) * 3).astype(dtype)


def _assert_stable(after: onnx.ModelProto, rule: Rule, target: str) -> None:
    again = onnx.ModelProto()
    again.CopyFrom(after)
    record = apply(again, (rule,), target)
    assert not record.entries, f"a second run fires at {[e.node for e in record.entries]}"
    assert again.SerializeToString(deterministic=True) == after.SerializeToString(deterministic=True)
