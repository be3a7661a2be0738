import re
import subprocess

import onnx
import pytest
from onnx import TensorProto, helper

from tests.browser import CHROMIUM, needs_browser
from trtconv.backends.tensorrt.layers import LayerInfo, LayerTensor
from trtconv.check.reporters.html.network.data import graph_of_layers, graph_of_model, read_graph
from trtconv.check.reporters.html.network.page import graph_html, write_graph_page
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import save_model
from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY, SOURCE_KEY


def chain(length: int, branch: int = 7) -> onnx.ModelProto:
    """A chain of Relu nodes in which every `branch`-th adds an earlier value."""
    nodes, last, older = [], "x", "x"
    for i in range(length):
        if i % branch == branch - 1:
            nodes.append(helper.make_node("Add", [last, older], [f"t{i}"], f"add_{i}"))
            older = f"t{i}"
        else:
            nodes.append(helper.make_node("Relu", [last], [f"t{i}"], f"relu_{i}"))
        last = f"t{i}"
    value = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "chain", [value("x", TensorProto.FLOAT, ["N", 8])], [value(last, TensorProto.FLOAT, ["N", 8])]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def marked() -> onnx.ModelProto:
    """Conv with weights, a node made by a rule, a body that reads from outside, and a name that is not HTML."""
    value = helper.make_tensor_value_info
    then = helper.make_graph([helper.make_node("Neg", ["a"], ["p"])], "then", [], [value("p", TensorProto.FLOAT, None)])
    other = helper.make_graph(
        [helper.make_node("Identity", ["a"], ["q"])], "else", [], [value("q", TensorProto.FLOAT, None)]
    )
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["a"], "</script><b>conv", pads=[1, 1, 1, 1]),
        helper.make_node("If", ["c"], ["y"], "branch", then_branch=then, else_branch=other),
    ]
    for key, text in ((MODULE_KEY, "body.conv"), (SOURCE_KEY, "net.py:12"), (RULE_KEY, "einsum")):
        nodes[0].metadata_props.add(key=key, value=text)
    graph = helper.make_graph(
        nodes,
        "marked",
        [value("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
        [value("y", TensorProto.FLOAT, None)],
        [
            helper.make_tensor("w", TensorProto.FLOAT, [4, 3, 3, 3], [0.0] * 108),
            helper.make_tensor("c", TensorProto.BOOL, [], [True]),
        ],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


def test_boxes_and_arrows_are_those_of_the_graph(tmp_path):
    save_model(marked(), tmp_path / "m.onnx")
    graph = read_graph(tmp_path / "m.onnx")
    assert [n.op for n in graph.nodes] == ["Input", "Conv", "If", "Output"]
    conv = graph.nodes[1]
    assert conv.rule == "einsum"
    assert ("source", "net.py:12") in conv.facts
    assert ("module", "body.conv") in conv.facts
    assert ("input", "w  float32[4,3,3,3]") in conv.facts
    assert ("pads", "[1, 1, 1, 1]") in conv.facts
    edges = [(a, b, name) for a, b, name, _ in graph.edges]
    assert edges == [(0, 1, "x"), (1, 2, "a"), (2, 3, "y")], "the body of If reads 'a' from outside"
    assert graph.edges[1][3] == "float32[N,4,H,W]", "dims that the file does not say are inferred"


def test_layers_of_an_engine():
    x, a, y = (LayerTensor(n, (1, 8), "float16") for n in "xay")
    layers = (
        LayerInfo("conv", "Convolution", (x,), (a,), "tactic_1", ("node_1", "node_2"), 4e-5),
        LayerInfo("relu", "PointWise", (a,), (y,)),
    )
    graph = graph_of_layers(layers, "m.engine")
    assert [n.op for n in graph.nodes] == ["Input", "Convolution", "PointWise", "Output"]
    assert graph.nodes[1].seconds == 4e-5
    assert graph.nodes[1].dtype == "float16"
    assert ("ONNX node", "node_2") in graph.nodes[1].facts
    assert [(a, b) for a, b, _, _ in graph.edges] == [(0, 1), (1, 2), (2, 3)]


def test_nothing_in_a_model_can_leave_its_place_in_the_page():
    html = graph_html(graph_of_model(marked(), __import__("pathlib").Path("<i>m.onnx")))
    assert "</script><b>" not in html
    assert "<i>m" not in html
    assert html.count("</script>") == 4


def test_the_page_names_no_place_to_load_from(tmp_path):
    save_model(chain(20), tmp_path / "m.onnx")
    write_graph_page(tmp_path / "m.onnx", tmp_path / "m.html")
    html = (tmp_path / "m.html").read_text()
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)
    assert "default-src 'none'" in html
    assert "Permission is hereby granted" in html, "the licence of the layout library travels with it"


def test_a_page_of_450_nodes_is_small(tmp_path):
    save_model(chain(450), tmp_path / "m.onnx")
    write_graph_page(tmp_path / "m.onnx", tmp_path / "m.html")
    assert (tmp_path / "m.html").stat().st_size < 500_000


def test_a_file_that_is_no_model_is_named(tmp_path):
    (tmp_path / "m.onnx").write_text("no")
    with pytest.raises(InvalidRequestError, match="is truncated or not an ONNX model"):
        write_graph_page(tmp_path / "m.onnx", tmp_path / "m.html")
    assert not (tmp_path / "m.html").exists()


def requested(page, tmp_path) -> tuple[str, set[str]]:
    """The page's DOM after its scripts ran, and every address that the page (not Chromium itself) asked for."""
    log = tmp_path / f"{page.stem}.net.json"
    process = subprocess.run(
        [CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={tmp_path / 'profile'}",
         "--disable-background-networking", "--disable-component-update", f"--log-net-log={log}",
         "--virtual-time-budget=20000", "--dump-dom", page.as_uri()],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    # One event per line; what Chromium does for itself has no origin.
    lines = [line for line in log.read_text().splitlines() if '"initiator":"' in line]
    requests = [line for line in lines if '"initiator":"not an origin"' not in line]
    return process.stdout, {u for line in requests for u in re.findall(r'"url":"((?:https?|wss?)://[^"]+)"', line)}


@needs_browser
@pytest.mark.parametrize("length", [30, 450, pytest.param(3000, marks=pytest.mark.slow)])
def test_in_a_browser_every_node_is_drawn_and_no_request_leaves(tmp_path, length):
    save_model(chain(length), tmp_path / "m.onnx")
    write_graph_page(tmp_path / "m.onnx", tmp_path / "m.html")
    dom, requests = requested(tmp_path / "m.html", tmp_path)
    ready = re.search(r'data-ready="(\d+)"', dom)
    assert ready, dom[-500:]
    assert dom.count('class="node"') == length + 2
    assert len(re.findall(r'class="edge[ "]', dom)) == length + 1 + length // 7
    assert requests == set()


@needs_browser
def test_a_request_would_be_seen(tmp_path):
    (tmp_path / "loud.html").write_text('<img src="http://127.0.0.1:9/beacon.png">')
    _, requests = requested(tmp_path / "loud.html", tmp_path)
    assert "http://127.0.0.1:9/beacon.png" in requests
