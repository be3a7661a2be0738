"""One count of nodes everywhere: of the main graph, without Constants; the rest is said."""

import json
import re

import onnx
import pytest
from onnx import TensorProto, helper

from tests.check.reporters.cases import report
from trtconv.check.reporters.html.page_networks import network_pair
from trtconv.check.reporters.html.report import html_text
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.model.file import save_model


def constant(name, kind, value):
    tensor = helper.make_tensor(name, kind, [], [value])
    return helper.make_node("Constant", [], [name], value=tensor)


@pytest.fixture
def model(tmp_path):
    """An If whose bodies hold nodes and a Constant, a HardSwish that TensorRT 8.6 lacks, and three Constants."""

    def value(name):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 4])

    def body(name, op):
        nodes = [constant(f"{name}_half", TensorProto.FLOAT, 0.5), helper.make_node(op, ["h", f"{name}_half"], [name])]
        return helper.make_graph(nodes, name, [], [value(name)])

    nodes = [
        constant("one", TensorProto.FLOAT, 1.0),
        constant("limit", TensorProto.FLOAT, 3.0),
        constant("axes", TensorProto.INT64, 1),
        helper.make_node("HardSwish", ["x"], ["h"], name="swish"),
        helper.make_node("ReduceSum", ["h"], ["total"], name="sum", keepdims=0),
        helper.make_node("Greater", ["total", "limit"], ["many"], name="greater"),
        helper.make_node(
            "If", ["many"], ["chosen"], name="if", then_branch=body("p", "Mul"), else_branch=body("q", "Add")
        ),
        helper.make_node("Add", ["chosen", "one"], ["y"], name="add"),
    ]
    graph = helper.make_graph(nodes, "counted", [value("x")], [value("y")])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)
    onnx.checker.check_model(proto)
    save_model(proto, tmp_path / "model.onnx")
    return tmp_path / "model.onnx"


def test_inspect_says_what_is_counted(model, trtconv):
    code, said, err = trtconv("inspect", model)
    assert code == 0, err
    assert "5; besides 3 Constants, 2 in bodies of If, Loop and Scan" in said
    assert "Constant 3" not in said
    code, said, err = trtconv("inspect", model, "--json", "-")
    facts = json.loads(said)
    assert (facts["node_count"], facts["constant_count"], facts["body_node_count"]) == (5, 3, 2)
    assert sum(facts["nodes_by_type"].values()) == 5


def test_ledger_report_and_picture_agree_with_inspect(model, trtconv):
    rewritten = model.with_name("model.trt.onnx")
    code, _, err = trtconv("rewrite", model, "-o", rewritten, "--target", "tensorrt==8.6", "--dynamic", "N=1:2:4")
    assert code == 0, err
    counts = [json.loads(trtconv("inspect", m, "--json", "-")[1])["node_count"] for m in (model, rewritten)]
    ledger = rewritten.with_name("model.rewrites.json")
    assert json.loads(ledger.read_text())["nodes"] == counts
    assert [n["nodes"] for n in network_pair(rewritten, read_ledger(ledger).entries)] == counts
    page = html_text(report(subject=str(rewritten)))
    assert f"{counts[0]} to {counts[1]} nodes" in page
    assert f"model.onnx with {counts[0]} nodes, model.trt.onnx with {counts[1]}, constants not counted" in page
    picture = model.with_name("picture.html")
    assert trtconv("inspect", model, "--html", picture)[0] == 0
    assert re.search(rf"\b{counts[0]} nodes", picture.read_text())
