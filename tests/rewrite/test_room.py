"""The room as a whole: files in, files out."""

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.rewrite.harness import Case, model_of
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.ledger.options import same_rewrite
from trtconv.core.ledger.reading import read_ledger
from trtconv.core.model.file import set_metadata
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.rewrite import list_rules, rewrite_model
from trtconv.rewrite.engine.explain import diff_lines, explain_lines

NORM = Case(
    "norm and pool",
    """q = Pow(x, two) s = ReduceSum(q, axis) n = Sqrt(s) d = Add(n, eps) v = Div(x, d) h = Shape(v)
       c = Cast<to=1>(h) p = AveragePool<kernel_shape=[9,1]>(v) u = AveragePool<kernel_shape=[5,1]>(v)
       m = ReduceMean<axes=[2]>(u) y = Add(p, m)""",
    "float[N,8,9,W] x",
    constants="int64[1] axis = {1}, float two = {2.0}, float eps = {1e-10}",
)


def ask(model, folder: Path, name="m", **options):
    source = folder / f"{name}.onnx"
    source.write_bytes(model.SerializeToString())
    target = parse_target(options.pop("target", "tensorrt-rtx"))
    output = options.pop("output", folder / f"{name}.trt.onnx")
    return rewrite_model(RewriteRequest(source, output, target, **options), SilentProgress())


def with_space(model):
    set_metadata(model, "trtconv.space", "N=1:2:5 W=7:16:40")
    set_metadata(model, "trtconv.inputs", "x:float32[N,8,9,W]")
    set_metadata(model, "author", "somebody")
    model.doc_string = "about the model"
    model.graph.doc_string = "about the graph"
    model.graph.input[0].doc_string = "about x"
    for node in model.graph.node:
        node.metadata_props.add(key="trtconv.module", value="head.norm")
        node.metadata_props.add(key="trtconv.source", value="net.py:12")
    return model


def test_the_ledger_says_everything(tmp_path):
    result = ask(with_space(model_of(NORM)), tmp_path)
    ledger = json.loads(result.ledger.read_text())
    assert result.ledger.name == "m.rewrites.json"
    assert ledger["schema"] == 2
    assert ledger["target"] == "tensorrt-rtx"
    assert ledger["space"] == "N=1:2:5 W=7:16:40"
    by_rule = {e["rule"]: e for e in ledger["entries"]}
    assert set(by_rule) == {"pool-whole-axis", "l2norm"}
    norm = by_rule["l2norm"]
    assert norm["module"] == "head.norm"
    assert norm["source"] == "net.py:12"
    assert [n["op"] for n in norm["before"]] == ["Pow", "ReduceSum", "Sqrt", "Add", "Div"]
    assert [n["op"] for n in norm["after"]] == ["Mul", "ReduceSum", "Sqrt", "Add", "Div"]
    proof = ledger["proofs"][norm["proof"]]
    assert proof["passed"] is True
    assert len({json.dumps(s) for s in proof["shapes"]}) >= 3
    assert all(s["x"][1:3] == [8, 9] and 7 <= s["x"][3] <= 40 for s in proof["shapes"]), "real shapes of the space"
    assert proof["max_abs"] < 1e-5
    assert ledger["whole_graph"]["passed"] is True
    assert [s["rule"] for s in ledger["skipped"]] == []


def test_everything_around_is_kept(tmp_path):
    model = with_space(model_of(NORM))
    after = onnx.load(str(ask(model, tmp_path).model))
    assert list(after.metadata_props) == list(model.metadata_props)
    assert (after.doc_string, after.graph.doc_string) == (model.doc_string, model.graph.doc_string)
    assert list(after.graph.input) == list(model.graph.input)
    assert list(after.graph.output) == list(model.graph.output)
    for node in after.graph.node:
        props = {p.key: p.value for p in node.metadata_props}
        assert props["trtconv.module"] == "head.norm"
        assert props["trtconv.source"] == "net.py:12"
    assert {"l2norm", "pool-whole-axis"} == {
        p.value for n in after.graph.node for p in n.metadata_props if p.key == "trtconv.rule"
    }


def test_equal_runs_give_equal_files_and_a_second_run_changes_nothing(tmp_path):
    first = ask(model_of(NORM), tmp_path, "a")
    (tmp_path / "elsewhere").mkdir()
    second = ask(model_of(NORM), tmp_path / "elsewhere", "a")
    assert first.model.read_bytes() == second.model.read_bytes()
    assert first.ledger.read_bytes() == second.ledger.read_bytes()
    again = ask(onnx.load(str(first.model)), tmp_path, "c")
    assert not again.entries
    assert again.model.read_bytes() == first.model.read_bytes()


def test_only_and_skip(tmp_path):
    assert {e.rule for e in ask(model_of(NORM), tmp_path, only=("l2norm",)).entries} == {"l2norm"}
    assert {e.rule for e in ask(model_of(NORM), tmp_path, skip=("l2norm",)).entries} == {"pool-whole-axis"}


def test_a_rule_that_the_target_does_not_need_is_applied_when_asked_for(tmp_path):
    gelu = model_of(Case("gelu", "y = Gelu(x)", "float[N,8] x", opset=20))
    assert not ask(gelu, tmp_path).entries
    result = ask(gelu, tmp_path, also=("gelu",))
    assert {e.rule for e in result.entries} == {"gelu"}
    assert result.whole.passed
    again = same_rewrite(read_ledger(result.ledger), tmp_path / "m.onnx", tmp_path / "again.onnx")
    assert again.also == ("gelu",)
    assert {e.rule for e in ask(model_of(NORM), tmp_path, only=("l2norm",), also=("pool-whole-axis",)).entries} == {
        "l2norm",
        "pool-whole-axis",
    }


def test_a_rule_is_not_both_applied_and_left_out(tmp_path):
    with pytest.raises(InvalidRequestError, match="--also and --skip both name 'l2norm'"):
        ask(model_of(NORM), tmp_path, also=("l2norm",), skip=("l2norm",))
    with pytest.raises(InvalidRequestError, match="--only and --skip both name 'l2norm'"):
        ask(model_of(NORM), tmp_path, only=("l2norm",), skip=("l2norm",))


@pytest.mark.parametrize("option", ["only", "skip", "also"])
def test_an_unknown_rule_has_a_suggestion_and_no_file_is_written(option, tmp_path):
    with pytest.raises(InvalidRequestError, match="'l2norm'"):
        ask(model_of(NORM), tmp_path, **{option: ("l2nrom",)})
    assert not (tmp_path / "m.trt.onnx").exists()


def test_no_proof(tmp_path):
    result = ask(model_of(NORM), tmp_path, proof=False)
    assert len(result.entries) == 2
    assert all(e.proof.passed is None for e in result.entries)
    assert result.whole is None
    assert "not proved" in "\n".join(explain_lines(result))


def test_explain_and_diff(tmp_path):
    result = ask(with_space(model_of(NORM)), tmp_path)
    text = "\n".join(explain_lines(result))
    assert "rewrote  l2norm: " in text
    assert "[head.norm (net.py:12)]" in text
    assert "equal at" in text
    assert "whole graph: equal" in text
    lines = diff_lines(result)
    assert any(line.startswith("- p = AveragePool(v)") for line in lines)
    assert any(line.startswith("+ p = ReduceMean(v") for line in lines)
    nothing = ask(model_of(Case("r", "y = Relu(x)")), tmp_path, "r")
    assert explain_lines(nothing) == ["no rule found anything to do"]
    assert diff_lines(nothing) == ["nothing changed"]


def test_skips_are_explained(tmp_path):
    case = Case("baked", "y = AveragePool<kernel_shape=[16,1]>(x)")
    result = ask(model_of(case), tmp_path)
    assert [s.rule for s in result.skipped] == ["pool-whole-axis"]
    assert "baked" in "\n".join(explain_lines(result))


RULE_FILE = """
from trtconv.rewrite.engine.rule import Found, Rule

def find(graph, node):
    return Found((node,), lambda g: g.op("{op}", node.inputs[0]{more}))

RULES = (Rule("mine", "For the test.", ("Relu",), find),)
"""


def test_a_rule_of_the_users_own(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(RULE_FILE.format(op="Max", more=", g.scalar(0.0, node.inputs[0])"))
    result = ask(model_of(Case("r", "y = Relu(x)")), tmp_path, rule_files=(mine,))
    assert [e.rule for e in result.entries] == ["mine"]
    assert [n.op_type for n in onnx.load(str(result.model)).graph.node] == ["Max"]


def test_a_wrong_rule_is_taken_back_and_the_graph_kept(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(RULE_FILE.format(op="Abs", more=""))
    model = model_of(Case("r", "y = Relu(x)"))
    result = ask(model, tmp_path, rule_files=(mine,))
    assert not result.entries
    assert [r.rule for r in result.rejected] == ["mine"]
    assert "elements differ" in result.rejected[0].reason
    assert onnx.load(str(result.model)) == model
    assert "rejected mine" in "\n".join(explain_lines(result))
    assert json.loads(result.ledger.read_text())["rejected"][0]["proof"]["passed"] is False


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("x = (", "fails: SyntaxError"),
        ("RULES = ()", "defines no rules"),
        ("RULES = ('relu',)", "defines no rules"),
        ("raise ValueError('no')", "fails: ValueError: no"),
    ],
)
def test_a_broken_rule_file(text, match, tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(text)
    with pytest.raises(InvalidRequestError, match=match):
        ask(model_of(Case("r", "y = Relu(x)")), tmp_path, rule_files=(mine,))


def test_a_missing_rule_file_and_a_clash(tmp_path):
    with pytest.raises(InvalidRequestError, match="no rule file"):
        ask(model_of(NORM), tmp_path, rule_files=(tmp_path / "none.py",))
    mine = tmp_path / "mine.py"
    mine.write_text(RULE_FILE.format(op="Max", more=", g.scalar(0.0, node.inputs[0])").replace('"mine"', '"l2norm"'))
    with pytest.raises(InvalidRequestError, match="twice"):
        ask(model_of(NORM), tmp_path, rule_files=(mine,))


def test_a_rule_that_raises_is_named(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(RULE_FILE.format(op="Max", more=", g.nothing"))
    model = model_of(Case("r", "y = Relu(x)"))
    result = ask(model, tmp_path, rule_files=(mine,))
    assert not result.entries
    assert [s.rule for s in result.skipped] == ["mine"]
    assert "the rule 'mine' fails at Relu 'y': AttributeError" in result.skipped[0].reason
    assert any("the rule 'mine' fails" in note for note in result.notes)
    assert list(onnx.load(str(result.model)).graph.node) == list(model.graph.node)


def test_an_invalid_graph_is_not_written_even_without_proof(tmp_path):
    mine = tmp_path / "mine.py"
    mine.write_text(RULE_FILE.format(op="NoSuchOp", more=""))
    with pytest.raises(TrtconvError, match="not valid ONNX"):
        ask(model_of(Case("r", "y = Relu(x)")), tmp_path, rule_files=(mine,), proof=False)
    assert not (tmp_path / "m.trt.onnx").exists()


def test_weights_on_disk_are_copied_and_not_read(tmp_path):
    size = 256
    model = helper.make_model(
        helper.make_graph(
            [
                helper.make_node("MatMul", ["x", "w"], ["m"], name="mm"),
                helper.make_node("ReduceL2", ["m"], ["n"], name="l2", axes=[-1]),
                helper.make_node("Div", ["m", "n"], ["y"], name="div"),
            ],
            "g",
            [helper.make_tensor_value_info("x", 1, ["N", size])],
            [helper.make_tensor_value_info("y", 1, ["N", size])],
            [numpy_helper.from_array(np.random.default_rng(0).standard_normal((size, size)).astype(np.float32), "w")],
        ),
        opset_imports=[helper.make_opsetid("", 17)],
        ir_version=8,
    )
    source = tmp_path / "in" / "big.onnx"
    source.parent.mkdir()
    onnx.save(model, str(source), save_as_external_data=True, location="big.data", size_threshold=0)
    os.chmod(source.parent / "big.data", 0o644)
    output = tmp_path / "out" / "big.trt.onnx"
    result = rewrite_model(RewriteRequest(source, output, parse_target("tensorrt-rtx")), SilentProgress())
    assert [e.rule for e in result.entries] == ["l2norm"]
    assert not os.path.samefile(source.parent / "big.data", output.parent / "big.data")
    assert (source.parent / "big.data").read_bytes() == (output.parent / "big.data").read_bytes()
    assert result.whole is not None
    assert result.whole.passed is None
    assert "were not read" in result.whole.note
    import onnxruntime as ort

    x = np.random.default_rng(1).standard_normal((3, size)).astype(np.float32)
    runs = [
        ort.InferenceSession(str(p), providers=["CPUExecutionProvider"]).run(None, {"x": x})[0]
        for p in (source, output)
    ]
    assert np.allclose(*runs, rtol=1e-5)


def test_files_that_are_no_onnx(tmp_path):
    bad = tmp_path / "bad.onnx"
    bad.write_text("not onnx")
    with pytest.raises(InvalidRequestError):
        rewrite_model(RewriteRequest(bad, tmp_path / "o.onnx", parse_target("tensorrt-rtx")), SilentProgress())
    with pytest.raises(InvalidRequestError):
        rewrite_model(
            RewriteRequest(tmp_path / "none.onnx", tmp_path / "o.onnx", parse_target("tensorrt-rtx")), SilentProgress()
        )
    assert not (tmp_path / "o.onnx").exists()


def test_the_tuple_and_the_folder_agree():
    folder = Path(__file__).parents[2] / "trtconv" / "rewrite" / "rules"
    files = {p.stem for p in folder.rglob("*.py")} - {"__init__"}
    rules = list_rules()
    modules = {r.find.__module__.rsplit(".", 1)[-1] for r in rules}
    assert modules == files
    assert len({r.name for r in rules}) == len(rules)
    assert {r.name.replace("-", "_") for r in rules} == files


def test_every_rule_says_why_in_one_sentence():
    for rule in list_rules():
        assert rule.why.endswith("."), rule.name
        assert ". " not in rule.why, rule.name
        assert len(rule.why) < 120, rule.name
        assert rule.before, rule.name
        assert rule.after, rule.name
