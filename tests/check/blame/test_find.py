"""Where a difference arises: in the rewrite, in the export, or in the engine alone."""

from pathlib import Path

import numpy as np
import pytest

from tests.check.models import node, small_net, write_pair
from trtconv.check import check_model
from trtconv.check.blame.find import _check_against, blame
from trtconv.check.blame.module_walk import leaving_tensors
from trtconv.check.compare.intermediates import tensor_values
from trtconv.check.compare.layers import GraphTensor, LayerReport, LayerRow, layer_finding
from trtconv.core.model.file import load_model, save_model
from trtconv.core.model.provenance import Origin
from trtconv.core.requests import CheckRequest
from trtconv.proof.comparison import compare_output
from trtconv.proof.reference import read_samples


def outputs_of_the_right_module(inputs):
    """What the submodules `norm` and `head` of the right network return."""
    values = tensor_values(small_net(), ["unit", "y"], inputs)
    return {"norm": (values["unit"],), "head": (values["y"],), "absent": (values["y"],)}


def wrong_export(folder, **options):
    write_pair(folder, small_net(**options))
    (folder / "model.trt.onnx").unlink()
    return folder / "model.onnx"


def test_a_submodule_hands_on_one_tensor():
    assert [(t.module, t.tensor) for t in leaving_tensors(small_net())] == [("norm", "unit"), ("head", "y")]


def test_of_nested_submodules_both_are_known_and_sizes_are_not_taken():
    model = small_net()
    inner = node("Relu", ["unit"], ["kept"], 30, "head.act")
    size = node("Shape", ["unit"], ["size"], 31, "head.act")
    model.graph.node.insert(5, inner)
    model.graph.node.insert(6, size)
    model.graph.node[7].input[0] = "kept"
    tensors_by_module = {t.module: t.tensor for t in leaving_tensors(model)}
    assert tensors_by_module["head.act"] == "kept"


def test_a_wrong_export_is_red_in_the_submodule_that_is_wrong(tmp_path):
    path = wrong_export(tmp_path, eps=0.1)
    report = check_model(CheckRequest(path), module_outputs=outputs_of_the_right_module)
    finding = report.errors[0]
    assert (finding.module, finding.source) == ("norm", "net.py:14")
    assert "first differs from the module in submodule 'norm'" in finding.message


def test_what_differs_after_all_submodules_is_said_so(tmp_path):
    path = wrong_export(tmp_path, scale=3.0)
    report = check_model(CheckRequest(path), module_outputs=lambda i: {"norm": outputs_of_the_right_module(i)["norm"]})
    finding = report.errors[0]
    assert "after submodule 'norm'" in finding.message
    assert finding.node == "/head/Mul"


def test_without_the_module_the_report_says_that_the_export_is_wrong_and_how_to_go_on(tmp_path):
    path = wrong_export(tmp_path, eps=0.1)
    report = check_model(CheckRequest(path))
    (note,) = [f for f in report.findings if f.level == "note"]
    assert "'model.onnx' itself differs from the module" in note.message
    assert f"trtconv check {path} --against" in note.hint


@pytest.mark.parametrize(
    ("module", "hint"),
    [
        ("net.py:make", "trtconv check m.onnx --against net.py:make"),
        ("third.onnx", "trtconv check m.onnx --against third.onnx"),
        ("MODULE", "trtconv check m.onnx --against MODULE"),
        ("net.Two", "trtconv.check('m.onnx', against=...) in Python, with the net.Two that was converted"),
    ],
)
def test_the_hint_can_be_typed(module, hint):
    """Of a module that was given in Python the reference knows the class alone."""
    assert _check_against(module, Path("m.onnx")) == hint


def test_the_exported_model_is_blamed_for_a_rewritten_one_that_equals_it(tmp_path):
    path = write_pair(tmp_path, small_net(eps=0.1))
    report = check_model(CheckRequest(path))
    (note,) = [f for f in report.findings if f.level == "note"]
    assert "'model.onnx' itself differs" in note.message


def test_a_rewrite_that_is_off_is_blamed_where_the_exported_model_is_right(tmp_path):
    path = write_pair(tmp_path, small_net(), small_net(eps=0.1))
    sample = next(iter(read_samples(tmp_path / "model.reference.safetensors")))
    finding = blame(CheckRequest(path), sample, ())
    assert "'model.onnx' is right at" in finding.message
    assert "its rewrite is to blame" in finding.message
    assert f"trtconv rewrite {tmp_path / 'model.onnx'} --skip RULE" in finding.hint


def test_a_graph_that_stops_is_red_at_the_node_also_without_a_reference_node(tmp_path):
    path = write_pair(tmp_path, rewritten=small_net(baked=32))
    report = check_model(CheckRequest(path))
    assert report.errors[0].node == "/head/Reshape"
    assert report.errors[0].source == "net.py:21"
    assert "'model.trt.onnx' does not run at" in report.errors[0].message


def test_a_layer_that_differs_is_an_error_at_its_line():
    tensor = GraphTensor("unit", "/norm/Div", "Div", Origin("norm", "net.py:14"))
    want = np.zeros(3, np.float32)
    row = LayerRow(tensor, compare_output("unit", "", want, want + 1))
    assert layer_finding(LayerReport((row,), ())).source == "net.py:14"
    fused = layer_finding(LayerReport((), (), tensor))
    assert "a fusion around Div '/norm/Div'" in fused.message
    assert layer_finding(LayerReport((), ())) is None


def test_the_outputs_of_submodules_that_are_called_once(tmp_path):
    torch = pytest.importorskip("torch")
    from trtconv.export.module.runner import ModuleRunner
    from trtconv.export.module.submodule_outputs import submodule_outputs

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.once, self.twice = torch.nn.ReLU(), torch.nn.Sigmoid()

        def forward(self, x):
            return self.twice(self.twice(self.once(x)))

    x = np.array([[-1.0, 2.0]], np.float32)
    result = submodule_outputs(ModuleRunner(Net()), {"x": x})
    assert list(result) == ["once"]
    np.testing.assert_array_equal(result["once"][0], np.maximum(x, 0))


def test_a_saved_model_keeps_the_places(tmp_path):
    save_model(small_net(), tmp_path / "m.onnx")
    assert len(leaving_tensors(load_model(tmp_path / "m.onnx"))) == 2
