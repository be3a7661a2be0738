"""One table per target: what `rewrite` refuses is what `check --target` calls wrong."""

import dataclasses

import onnx
import pytest
from onnx import parser

from trtconv.check.target.node_facts import read_facts
from trtconv.check.target.verdicts import judge_by_table
from trtconv.core.errors import UnsupportedError
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.targets.facts import TABLES, TargetFacts
from trtconv.core.targets.facts import read_facts as read_target_facts
from trtconv.core.targets.table import load_table
from trtconv.rewrite.engine.refuse import refuse_silently_wrong

EIGHT = parse_target("tensorrt==8.6")
# Node, inputs of the graph, opset, and whether TensorRT 8.6 takes it and computes something else.
CASES = [
    ("y = AveragePool<kernel_shape=[3,3],ceil_mode=1,strides=[2,2]>(x)", 17, True),
    ("y = AveragePool<kernel_shape=[3,3],ceil_mode=1,strides=[1,1]>(x)", 17, False),
    ("y = AveragePool<kernel_shape=[3,3],ceil_mode=1>(x)", 17, False),
    ("y = AveragePool<kernel_shape=[3,3],strides=[2,2]>(x)", 17, False),
    ("g = Transpose<perm=[0,2,3,1]>(x) h = Slice(g, zero, two, three) y = GridSample(x, h)", 17, False),
    ('g = Transpose<perm=[0,2,3,1]>(x) h = Slice(g, zero, two, three) y = GridSample<mode="linear">(x, h)', 20, True),
    ("y = ReduceSum<noop_with_empty_axes=1>(x)", 17, True),
    ("y = ReduceSum<noop_with_empty_axes=1>(x, two)", 17, False),
    ("y = ReduceSum(x)", 17, False),
    ("y = ReduceMax(x, two)", 18, True),
    ("y = Shape<start=1>(x)", 17, True),
    ("y = Shape(x)", 17, False),
    ("i = Shape(x) y = Add(i, huge)", 17, True),
    ("i = Shape(x) y = Add(i, two)", 17, False),
    ('y = ScatterND<reduction="add">(x, rows, x)', 17, True),
    ("y = ScatterND(x, rows, x)", 17, False),
]


def model_of(text, opset):
    header = f'<ir_version: 9, opset_import: ["": {opset}]> g (float[2,4,8,8] x) => (y) '
    weights = "<int64[1] zero = {0}, int64[1] two = {2}, int64[1] three = {3}, int64[1] huge = {5000000000}, "
    model = parser.parse_model(f"{header}{weights}int64[2,1] rows = {{0, 1}}> {{ {text} }}")
    return onnx.shape_inference.infer_shapes(model)


def wrong_nodes(model, target):
    facts = read_facts(model)
    table = load_table(target)
    return [v.message for v in (judge_by_table(n, facts, target, table) for n in facts.nodes) if v.status == "wrong"]


@pytest.mark.parametrize(("text", "opset", "wrong"), CASES, ids=[c[0] for c in CASES])
def test_rewrite_refuses_what_check_calls_wrong(text, opset, wrong):
    model = model_of(text, opset)
    assert bool(wrong_nodes(model, EIGHT)) == wrong
    if not wrong and opset <= EIGHT.max_opset:
        refuse_silently_wrong(model, EIGHT, [])
        return
    with pytest.raises(UnsupportedError) as caught:
        refuse_silently_wrong(model, EIGHT, [])
    assert wrong_nodes(model, EIGHT)[0].split("tensorrt==8.6 ")[1] in caught.value.message


def test_every_wrong_construct_is_one_that_rewrite_refuses():
    """The rooms read one list: a construct that is added to the table is refused without a line of code."""
    construct = next(c for c in load_table(EIGHT).constructs if "AveragePool" in c.ops and c.effect == "wrong")
    assert [c["attribute"] for c in construct.when] == ["ceil_mode", "strides"]
    newer = [c for t in KNOWN_TARGETS[1:] for c in load_table(parse_target(t)).constructs if c.effect == "wrong"]
    assert newer == [], "refuse.py reads these tables too"


@pytest.mark.parametrize("text", KNOWN_TARGETS)
def test_a_target_says_what_its_table_says(text):
    target = parse_target(text)
    facts = read_target_facts(target.table)
    assert (target.generation, target.max_opset) == (facts.generation, facts.max_opset)
    assert (target.strongly_typed, target.has_plugins) == (facts.strongly_typed, facts.has_plugins)
    assert load_table(target).max_opset == facts.max_opset
    assert {f.name for f in dataclasses.fields(TargetFacts)} == set(vars(facts))


def test_there_is_one_table_per_known_target():
    assert {parse_target(t).table for t in KNOWN_TARGETS} == {p.stem for p in TABLES.glob("*.json")}
    assert all(onnx.defs.onnx_opset_version() >= parse_target(t).max_opset for t in KNOWN_TARGETS)
