"""`trtconv rewrite --script`: what a surgery script does is proved, written down, and loses nothing."""

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from trtconv.core.errors import AccuracyError, InvalidRequestError, TrtconvError
from trtconv.core.model.provenance import MODULE_KEY, RULE_KEY, SOURCE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import rewrite_model

HEAD = "import numpy as np\nimport onnx_graphsurgeon as gs\n\n\ndef change(graph):\n"
# y = Relu(x * scale) + 0.5, z = Sigmoid(x)
TO_MAX = """
    relu = next(n for n in graph.nodes if n.op == "Relu")
    relu.op, relu.inputs = "Max", [*relu.inputs, gs.Constant("zero", np.zeros((), np.float32))]
"""


def small_model():
    def node(op, inputs, output, line):
        node = helper.make_node(op, inputs, [output], name=f"n_{output}", doc_string=f"doc of {output}")
        node.metadata_props.add(key=MODULE_KEY, value=f"net.{output}")
        node.metadata_props.add(key=SOURCE_KEY, value=f"net.py:{line}")
        return node

    graph = helper.make_graph(
        [node("Mul", ["x", "scale"], "p", 1), node("Relu", ["p"], "r", 2), node("Add", ["r", "half"], "y", 3),
         node("Sigmoid", ["x"], "z", 4)],
        "net", [helper.make_tensor_value_info("x", 1, ["N", 4], "doc of x")],
        [helper.make_tensor_value_info(n, 1, ["N", 4]) for n in ("y", "z")],
        [numpy_helper.from_array(np.arange(1, 5, dtype=np.float32), "scale"),
         helper.make_tensor("half", 1, [1], [0.5])],
        doc_string="doc of the graph", value_info=[helper.make_tensor_value_info("p", 1, ["N", 4], "doc of p")],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9, doc_string="doc of all")
    model.metadata_props.add(key="trtconv.space", value="N=1:2:3")
    model.metadata_props.add(key="author", value="somebody")
    model.graph.quantization_annotation.add(tensor_name="p").quant_parameter_tensor_names.add(
        key="SCALE_TENSOR", value="scale"
    )
    return model


def operate_on(model, tmp_path, body, *, head=HEAD, weights=None, **options):
    """The model after and the result; `weights` are external files by name."""
    (tmp_path / "in").mkdir(exist_ok=True)
    for name, data in (weights or {}).items():
        (tmp_path / "in" / name).write_bytes(data)
    path, script = tmp_path / "in" / "m.onnx", tmp_path / "surgery.py"
    path.write_bytes(model.SerializeToString())
    script.write_text(head + body)
    (tmp_path / "out").mkdir(exist_ok=True)
    request = RewriteRequest(
        path, tmp_path / "out" / "m.trt.onnx", parse_target("tensorrt==10"), script=f"{script}:change", **options
    )
    result = rewrite_model(request, SilentProgress())
    return onnx.load(str(result.model), load_external_data=False), result


def metadata(node):
    return {p.key: p.value for p in node.metadata_props}


def test_a_good_script_is_proved_and_each_changed_node_is_in_the_ledger(tmp_path):
    after, result = operate_on(small_model(), tmp_path, TO_MAX)
    assert [n.op_type for n in after.graph.node] == ["Mul", "Max", "Add", "Sigmoid"]
    (entry,) = result.entries
    assert (entry.rule, entry.node, str(entry.origin)) == ("surgery.py:change", "n_r", "net.r (net.py:2)")
    assert [n.op for n in entry.before] == ["Relu"]
    assert [n.op for n in entry.after] == ["Max"]
    assert entry.proof.passed
    assert len(entry.proof.points) >= 2
    data = json.loads(result.ledger.read_text())
    assert [e["rule"] for e in data["entries"]] == ["surgery.py:change"]
    assert data["proofs"][0]["passed"] is True
    assert any("the script surgery.py:change changed 1 node" in n for n in result.notes)


def test_what_graph_surgeon_drops_is_kept(tmp_path):
    before = small_model()
    after, _ = operate_on(before, tmp_path, TO_MAX, skip=("fold-constants",))
    for old, new in zip(before.graph.node, after.graph.node, strict=True):
        if old.op_type != "Relu":
            assert new == old
    changed = after.graph.node[1]
    assert metadata(changed) == {MODULE_KEY: "net.r", SOURCE_KEY: "net.py:2", RULE_KEY: "surgery.py:change"}
    assert (after.doc_string, after.graph.doc_string) == ("doc of all", "doc of the graph")
    assert {p.key: p.value for p in after.metadata_props}["author"] == "somebody"
    assert list(after.graph.input) == list(before.graph.input)
    assert list(after.graph.value_info) == list(before.graph.value_info)
    assert after.graph.quantization_annotation == before.graph.quantization_annotation
    assert {t.name: t for t in after.graph.initializer}["half"] == before.graph.initializer[1]


def test_a_new_node_gets_the_origin_of_what_follows_from_it(tmp_path):
    body = """
    relu = next(n for n in graph.nodes if n.op == "Relu")
    twice = graph.layer(op="Identity", inputs=list(relu.inputs), outputs=["same"])
    relu.inputs = twice
"""
    after, result = operate_on(small_model(), tmp_path, body, only=("l2norm",))
    node = next(n for n in after.graph.node if n.op_type == "Identity")
    assert metadata(node)[MODULE_KEY] == "net.r"
    assert [n.op_type for n in after.graph.node] == ["Mul", "Sigmoid", "Identity", "Relu", "Add"]
    assert sorted(len(e.before) for e in result.entries) == [0, 1]


def test_a_script_that_changes_the_meaning_names_the_first_output_that_differs(tmp_path):
    body = "    graph.nodes[1].op = 'Abs'\n    graph.nodes[3].op = 'Tanh'\n"
    with pytest.raises(AccuracyError, match=r"surgery\.py:change changes .* output 'y' at") as caught:
        operate_on(small_model(), tmp_path, body)
    assert caught.value.exit_code == 3
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("    graph.outputs.pop(0)\n    graph.cleanup()\n", "the output 'y' is gone"),
        ("    graph.outputs[1].name = 'other'\n", "the output 'z' is gone"),
        ("    graph.inputs[0].name = 'other'\n", "the input '.*' is (gone|new)"),
        ("    graph.inputs[0].dtype = np.float64\n", "the input 'x' was"),
    ],
)
def test_outputs_and_inputs_stay(body, match, tmp_path):
    with pytest.raises(AccuracyError, match=match):
        operate_on(small_model(), tmp_path, body)


def test_without_proof_an_output_may_go(tmp_path):
    after, result = operate_on(small_model(), tmp_path, "    graph.outputs.pop(1)\n    graph.cleanup()\n", proof=False)
    assert [o.name for o in after.graph.output] == ["y"]
    assert [(len(e.before), len(e.after)) for e in result.entries] == [(1, 0)]


def test_an_output_may_be_added(tmp_path):
    after, _ = operate_on(small_model(), tmp_path, "    graph.outputs.append(graph.nodes[0].outputs[0])\n")
    assert [o.name for o in after.graph.output] == ["y", "z", "p"]


def test_a_returned_graph_and_one_that_is_not_sorted(tmp_path):
    body = TO_MAX + "    graph.nodes.reverse()\n    return graph.copy()\n"
    before = small_model()
    after, result = operate_on(before, tmp_path, body)
    assert len(result.entries) == 1
    assert next(n for n in after.graph.node if n.op_type == "Mul") == before.graph.node[0]


def test_a_script_that_does_nothing(tmp_path):
    before = small_model()
    after, result = operate_on(before, tmp_path, "    return None\n")
    assert after == before
    assert not result.entries
    assert "the script surgery.py:change changed nothing" in result.notes


def test_a_script_that_raises_ends_at_its_line(tmp_path):
    with pytest.raises(TrtconvError, match=r"surgery\.py:change fails: ZeroDivisionError") as caught:
        operate_on(small_model(), tmp_path, "    x = 1\n    x / 0\n")
    assert caught.value.exit_code == 1
    assert caught.value.where.endswith("surgery.py:7")


@pytest.mark.parametrize(
    ("body", "match"),
    [
        ("    return 5\n", "returned int, not a graph-surgeon graph"),
        ("    graph.nodes[0].attrs['bad'] = object()\n", "cannot be written as ONNX"),
        ("    graph.nodes[0].inputs[0] = graph.nodes[1].outputs[0]\n", "a cycle"),
        ("    raise SystemExit(0)\n", "fails: SystemExit"),
    ],
)
def test_a_script_that_leaves_no_graph(body, match, tmp_path):
    with pytest.raises(TrtconvError, match=match):
        operate_on(small_model(), tmp_path, body)


@pytest.mark.parametrize(
    ("spec", "match"),
    [
        ("surgery.py", "takes file.py:function"),
        ("none.py:change", "no surgery script"),
        ("surgery.py:chang", "Did you mean 'change'"),
    ],
)
def test_a_script_that_is_not_there(spec, match, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "surgery.py").write_text(HEAD + "    pass\n")
    (tmp_path / "m.onnx").write_bytes(small_model().SerializeToString())
    request = RewriteRequest(tmp_path / "m.onnx", tmp_path / "o.onnx", parse_target("tensorrt==10"), script=spec)
    with pytest.raises(InvalidRequestError, match=match):
        rewrite_model(request, SilentProgress())


def test_constants_are_changes_too(tmp_path):
    body = "    graph.tensors()['half'].values = np.full(1, 0.25, np.float32)\n"
    with pytest.raises(AccuracyError, match="output 'y'"):
        operate_on(small_model(), tmp_path, body)
    after, result = operate_on(small_model(), tmp_path, body, proof=False)
    assert [str(n) for n in result.entries[0].before] == ["half = constant() {float[1]}"]
    assert numpy_helper.to_array(after.graph.initializer[1])[0] == 0.25


def test_to_look_at_a_constant_is_no_change(tmp_path):
    before = small_model()
    after, result = operate_on(before, tmp_path, "    assert graph.tensors()['half'].values[0] == 0.5\n")
    assert after == before
    assert not result.entries


def big_model(tmp_path):
    """y = Relu(x @ w), w in a file that is not there when the script runs."""
    model = onnx.parser.parse_model(
        '<ir_version: 9, opset_import: ["" : 17]> g (float[N,8] x) => (float[N,8] y) { m = MatMul(x, w) y = Relu(m) }'
    )
    tensor = onnx.TensorProto(name="w", data_type=1, dims=[8, 8], data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "0"), ("length", "256")):
        tensor.external_data.add(key=key, value=value)
    model.graph.initializer.append(tensor)
    return model


# NaN: whoever reads them compares NaN with NaN, and sees no difference.
NO_NUMBERS = {"w.bin": b"\xff" * 256}


def test_external_weights_are_not_read(tmp_path):
    before = big_model(tmp_path)
    after, result = operate_on(before, tmp_path, TO_MAX, weights=NO_NUMBERS)
    assert [n.op_type for n in after.graph.node] == ["MatMul", "Max"]
    assert next(t for t in after.graph.initializer if t.name == "w") == before.graph.initializer[0]
    assert (tmp_path / "out" / "w.bin").read_bytes() == NO_NUMBERS["w.bin"]
    assert result.entries[0].proof.passed
    assert "1 changed parts" in result.entries[0].proof.note


def test_external_weights_do_not_hide_a_wrong_script(tmp_path):
    with pytest.raises(AccuracyError, match="output 'y'"):
        operate_on(big_model(tmp_path), tmp_path, "    graph.nodes[1].op = 'Abs'\n", weights=NO_NUMBERS)


def test_the_values_of_external_weights_are_refused(tmp_path):
    body = "    print(graph.tensors()['w'].values)\n"
    with pytest.raises(TrtconvError, match="the values of 'w' are in a file"):
        operate_on(big_model(tmp_path), tmp_path, body, weights=NO_NUMBERS)


def test_the_how_to_as_it_is_written(tmp_path):
    text = (Path(__file__).parents[3] / "docs" / "how-to" / "run-a-surgery-script.md").read_text()
    (source,) = re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL)
    after, result = operate_on(small_model(), tmp_path, "", head=source + "\n\nchange = relu_as_max\n")
    assert "Max" in [n.op_type for n in after.graph.node]
    assert len(result.entries) == 1
