import json
import re
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.cli.documents import validated
from trtconv.check.target.report import check_target
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import MODULE_KEY, SOURCE_KEY, SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import KNOWN_TARGETS, parse_target
from trtconv.core.targets.conditions import _KINDS
from trtconv.core.targets.table import load_table
from trtconv.frontend.documents import document
from trtconv.rewrite import rewrite_model

SUPPORT = sorted((Path(__file__).parents[3] / "trtconv/core/targets/tables").glob("*.json"))
BEFORE_RTX = ("tensorrt==8.6", "tensorrt==10", "tensorrt==11")


def one(op, inputs=("x",), outputs=("y",), opset=18, weights=(), domain="", dims=("N", 4, "H", "W"), **attributes):
    """A model of one node at net.py:7, between x [N,4,H,W] and y."""
    node = helper.make_node(op, list(inputs), list(outputs), "the_node", domain=domain, **attributes)
    node.metadata_props.add(key=SOURCE_KEY, value="net.py:7")
    node.metadata_props.add(key=MODULE_KEY, value="body.layer")
    values = [helper.make_tensor_value_info(o, TensorProto.FLOAT, None) for o in outputs if o]
    graph = helper.make_graph(
        [node], "one", [helper.make_tensor_value_info("x", TensorProto.FLOAT, list(dims))], values, list(weights)
    )
    opsets = [helper.make_opsetid("", opset)] + ([helper.make_opsetid(domain, 1)] if domain else [])
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    set_metadata(model, SPACE_KEY, "N=1:2:4 H=8:16:64 W=8:16:64")
    return model


def ints(name, *values):
    return helper.make_tensor(name, TensorProto.INT64, [len(values)], values)


def judged(tmp_path, model, target, **more):
    save_model(model, tmp_path / "m.onnx")
    return check_target(tmp_path / "m.onnx", parse_target(target), **{"sizes": False, **more})


def rewriter(model, target, output):
    result = rewrite_model(RewriteRequest(model, output, target, proof=False), SilentProgress())
    return [(e.rule, tuple(n.name for n in e.before)) for e in result.entries]


@pytest.mark.parametrize("path", SUPPORT, ids=lambda p: p.stem)
def test_every_entry_of_a_table_has_evidence_and_can_be_asked(path):
    data = json.loads(path.read_text())
    names = {s.name for s in onnx.defs.get_all_schemas_with_history() if s.domain == ""}
    assert data["opset_evidence"]
    for name, entry in data["ops"].items():
        assert name in names or "Swish" not in names, (
            f"{name} is not an operator (an older onnx does not know them all)"
        )
        assert entry["evidence"].strip(), name
    for construct in data["constructs"]:
        assert construct["evidence"].strip()
        assert construct["remedy"].strip()
        assert construct["effect"] in ("refused", "wrong")
        assert set(construct["ops"]) <= {*data["ops"], "*"}
        for condition in construct["when"]:
            kind = next(k for k in condition if k in _KINDS)
            assert kind in _KINDS
            re.compile(condition.get("matches", ""))


@pytest.mark.parametrize("target", KNOWN_TARGETS)
def test_every_target_has_a_table(target):
    table = load_table(parse_target(target))
    assert table.ops["Conv"].supported
    assert not table.ops["Unique"].supported


@pytest.mark.parametrize("target", KNOWN_TARGETS)
def test_a_plain_node_is_supported_everywhere(tmp_path, target):
    report = judged(tmp_path, one("Relu", opset=17), target)
    assert report.passed
    assert [n.status for n in report.nodes] == ["supported"]
    assert report.exit_code == 0


WRONG_ON_8_6 = [
    one("ReduceMean", ("x", "axes"), weights=[ints("axes", 1)]),
    one("Shape", start=1, opset=17),
    one("Shape", end=2, opset=17),
    one("Resize", ("x", "", "", "sizes"), weights=[ints("sizes", 1, 4, 8, 8)], antialias=1, mode="linear"),
    one("AveragePool", kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1, opset=17),
    one("ScatterND", ("x", "i", "u"), weights=[
        helper.make_tensor("i", TensorProto.INT64, [1, 1], [0]),
        helper.make_tensor("u", TensorProto.FLOAT, [1, 1, 1, 1], [1.0])], reduction="add"),
    one("GridSample", ("x", "x"), mode="linear", opset=20),
    one("Resize", ("x", "", "s"), opset=17, weights=[helper.make_tensor("s", TensorProto.FLOAT, [4], [1, 1, 1.7, 1.7])],
        mode="nearest"),
]  # fmt: skip


@pytest.mark.parametrize("model", WRONG_ON_8_6, ids=lambda m: m.graph.node[0].op_type)
def test_what_8_6_gets_wrong_without_a_word_is_an_error_at_the_line(tmp_path, model):
    report = judged(tmp_path, model, "tensorrt==8.6")
    (node,) = report.refused
    assert node.status == "wrong"
    assert "silently" in node.message
    assert report.exit_code == 4
    finding = next(f for f in report.findings if f.node == "the_node")
    assert (finding.level, finding.source, finding.module) == ("error", "net.py:7", "body.layer")
    assert finding.hint


@pytest.mark.parametrize("opset", [17, 18])
def test_an_opset_that_8_6_does_not_read_is_said_once(tmp_path, opset):
    report = judged(tmp_path, one("Relu", opset=opset), "tensorrt==8.6")
    assert report.passed == (opset == 17)
    assert len([f for f in report.findings if "opset 18" in f.message]) == (opset == 18)


@pytest.mark.parametrize("target", BEFORE_RTX)
def test_an_operator_that_no_target_has(tmp_path, target):
    report = judged(tmp_path, one("Unique", outputs=("y",), opset=17), target)
    assert [n.status for n in report.nodes] == ["refused"]
    assert "--explain" in report.findings[0].hint
    assert report.nodes[0].evidence


@pytest.mark.parametrize(
    ("op", "opset", "target", "passed"),
    [("Gelu", 20, "tensorrt==10", True), ("Swish", 24, "tensorrt==10.16", False), ("Swish", 24, "tensorrt==11", True)],
)
def test_operators_that_came_later(tmp_path, op, opset, target, passed):
    if opset > onnx.defs.onnx_opset_version():
        pytest.skip(f"onnx {onnx.__version__} has no opset {opset}")
    assert judged(tmp_path, one(op, opset=opset), target).passed == passed


def test_the_minor_version_counts(tmp_path):
    """Windows came with 10.4; a bare 10 promises no more than 10.0."""
    size = helper.make_tensor("n", TensorProto.INT64, [], [8])
    model = one("HannWindow", ("n",), weights=[size])
    assert not judged(tmp_path, model, "tensorrt==10").passed
    assert not judged(tmp_path, model, "tensorrt==10.3").passed
    assert judged(tmp_path, model, "tensorrt==10.4").passed


def test_einsum_with_a_diagonal_three_operands_or_dots(tmp_path):
    for equation, bad in (("nchw->nc", False), ("nchw,nchw->nc", False), ("nchh->nc", True), ("...hw->...h", True)):
        count = equation.split("->")[0].count(",") + 1
        model = one("Einsum", ("x",) * count, opset=17, equation=equation)
        assert bool(judged(tmp_path, model, "tensorrt==8.6").refused) == bad, equation
        assert not judged(tmp_path, model, "tensorrt==10.12").refused, equation


@pytest.mark.parametrize("target", BEFORE_RTX)
def test_a_plugin_node_names_its_plugin_and_is_no_failure(tmp_path, target):
    report = judged(tmp_path, one("L2Norm", domain="trtconv", opset=17), target)
    assert report.passed
    assert report.nodes[0].status == "plugin"
    assert report.nodes[0].plugin == "L2Norm"
    assert "--plugin" in report.nodes[0].remedy


def test_rtx_has_no_plugins(tmp_path):
    report = judged(tmp_path, one("L2Norm", domain="trtconv", opset=17), "tensorrt-rtx")
    assert report.exit_code == 4
    assert "plugin" in report.refused[0].message


def test_rtx_is_asked_itself(tmp_path):
    pytest.importorskip("tensorrt_rtx")
    report = judged(tmp_path, one("Unique", opset=17), "tensorrt-rtx")
    assert "the parser of tensorrt-rtx" in report.judged_by
    assert report.refused[0].origin.source == "net.py:7"
    good = judged(tmp_path, one("Relu", opset=17), "tensorrt-rtx")
    assert good.passed


def test_what_the_parser_takes_and_the_builder_refuses_is_refused(tmp_path):
    """The parser of RTX takes Attention in FP32; building it fails."""
    if onnx.defs.onnx_opset_version() < 23:
        pytest.skip(f"onnx {onnx.__version__} has no Attention")
    report = judged(tmp_path, one("Attention", ("x", "x", "x"), opset=23), "tensorrt-rtx")
    assert [n.status for n in report.refused] == ["refused"]
    assert "no kernel" in report.refused[0].message


@pytest.mark.parametrize("target", ["tensorrt==11", "tensorrt-rtx"])
def test_integers_that_no_tensorrt_has(tmp_path, target):
    model = one("Add", ("x", "x"), opset=17)
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = TensorProto.INT16
    assert judged(tmp_path, model, target).exit_code == 4


def test_a_node_that_a_rule_replaces_is_not_refused(tmp_path):
    model = one("ReduceMean", ("x", "axes"), weights=[ints("axes", 1)])
    report = judged(tmp_path, model, "tensorrt==8.6", rewriter=rewriter)
    assert report.passed, report.findings
    shape = one("Shape", start=1, opset=17)
    report = judged(tmp_path, shape, "tensorrt==8.6", rewriter=rewriter)
    assert report.passed, report.findings
    assert (report.nodes[0].status, report.nodes[0].rule) == ("rewritten", "shape-window")


def test_what_the_rules_refuse_is_judged_as_it_is(tmp_path):
    model = one(
        "Resize",
        ("x", "", "", "sizes"),
        weights=[ints("sizes", 1, 4, 8, 8)],
        mode="linear",
        keep_aspect_ratio_policy="not_larger",
    )
    report = judged(tmp_path, model, "tensorrt==8.6", rewriter=rewriter)
    assert report.exit_code == 4
    assert any("not rewritten" in n for n in report.notes)


def test_a_node_inside_of_a_body_counts_for_the_node_around_it(tmp_path):
    inner = helper.make_graph(
        [helper.make_node("Unique", ["x"], ["p"], "inside")],
        "then",
        [],
        [helper.make_tensor_value_info("p", TensorProto.FLOAT, None)],
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["q"])],
        "else",
        [],
        [helper.make_tensor_value_info("q", TensorProto.FLOAT, None)],
    )
    condition = helper.make_tensor("c", TensorProto.BOOL, [], [True])
    model = one("If", ("c",), opset=17, weights=[condition], then_branch=inner, else_branch=other)
    (node,) = judged(tmp_path, model, "tensorrt==11").refused
    assert "inside" in node.message


def test_undefined_sizes_are_part_of_the_verdict(tmp_path):
    """H * W has to divide by 16: with W held at its least size 8, H has to be even."""
    model = one("Reshape", ("x", "shape"), weights=[ints("shape", 0, 4, -1, 16)], opset=17)
    report = judged(tmp_path, model, "tensorrt==10", sizes=True)
    assert not report.refused
    assert report.exit_code == 4
    assert ["multiples of 2" in f.message for f in report.graph] == [True, True]
    assert {f.source for f in report.graph} == {"net.py:7"}


def test_a_report_is_plain_data(tmp_path):
    report = judged(tmp_path, one("Unique", opset=17), "tensorrt==11")
    data = validated(document("target", report.as_dict()), "target")
    assert data["counts"] == {"refused": 1}
    assert data["nodes"][0]["origin"] == {"module": "body.layer", "source": "net.py:7"}


def test_a_file_that_is_no_model(tmp_path):
    (tmp_path / "m.onnx").write_text("no")
    with pytest.raises(InvalidRequestError, match="is truncated or not an ONNX model"):
        check_target(tmp_path / "m.onnx", parse_target("tensorrt==10"))
