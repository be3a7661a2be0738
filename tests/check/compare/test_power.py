"""`trtconv check --power` from the command line: the line, the reports, and a verdict that is not green for nothing."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from importlib import resources

import jsonschema
import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.check.models import write_pair
from tests.proof.power.heads import SPACE, SPEC, head_model, samples_of
from trtconv.check import check_model
from trtconv.check.compare.power import power_findings
from trtconv.cli.main import run
from trtconv.core.model.file import save_model, set_metadata
from trtconv.core.model.provenance import SPACE_KEY
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import CheckRequest, RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.proof.power.result import PowerResult, TriedFault
from trtconv.proof.reference import ReferenceInfo, write_reference
from trtconv.rewrite import rewrite_model

SCHEMA = json.loads(resources.files("trtconv.check.reporters").joinpath("report.schema.json").read_text())


@pytest.fixture
def trtconv(capsys, tmp_path, monkeypatch):
    """Exit code and stdout of a command in the folder of the test."""
    monkeypatch.chdir(tmp_path)

    def call(*words):
        with pytest.raises(SystemExit) as caught:
            run([str(w) for w in words])
        return int(caught.value.code or 0), capsys.readouterr().out

    return call


def write_model(folder, model, samples=None):
    samples = samples or samples_of(model)
    set_metadata(model, SPACE_KEY, str(SPACE))
    save_model(model, folder / "model.onnx")
    info = ReferenceInfo(tuple(s.point for s in samples), (SPEC,), ("y",), SPACE)
    write_reference(folder / "model.reference.safetensors", info, samples)
    return folder / "model.onnx"


def idle_model(last):
    """A network whose head was initialised with zeros, or with a bias alone."""
    weights = {"w": np.zeros((4, 3, 1, 1), np.float32), "b": np.asarray(last, np.float32)}
    graph = helper.make_graph(
        [helper.make_node("Conv", ["x", "w", "b"], ["y"])],
        "idle",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 3, "H", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 4, "H", "W"])],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_the_line_and_every_report(trtconv, tmp_path):
    write_model(tmp_path, head_model("plain"))
    code, out = trtconv(
        "check", "model.onnx", "--power", "12", "--json", "r.json", "--junit", "r.xml", "--sarif", "r.sarif", "--html",
        "r.html", "--markdown", "r.md",
    )  # fmt: skip
    assert code == 0
    data = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(data, SCHEMA)
    power = data["extras"]["power"]
    assert power["tried"] == len(power["faults"]) == 12
    assert power["reported"] >= 10
    assert power["changed"] == power["reported"] + len(power["missed"])
    line = f"{power['reported']} of {power['changed']} small faults reported"
    texts = [out, *((tmp_path / f"r.{kind}").read_text() for kind in ("html", "md"))]
    assert all(line in text for text in texts)
    values = [p.get("value", "") for p in ET.parse(tmp_path / "r.xml").getroot().iter("property")]
    assert any(line in v for v in values)


def test_a_bare_power_takes_no_file_for_its_number(trtconv, tmp_path):
    write_pair(tmp_path)
    for words in (("--power", "model.trt.onnx"), ("model.trt.onnx", "--power")):
        code, out = trtconv("check", *words)
        assert code == 0
        assert "small faults reported" in out
    assert "small faults" not in trtconv("check", "model.trt.onnx")[1]
    assert trtconv("check", "model.trt.onnx", "--power=-1")[0] == 2


def test_missed_faults_stand_in_the_report_by_module_and_the_verdict_is_amber(trtconv, tmp_path):
    write_pair(tmp_path)
    code, out = trtconv(
        "check", "model.trt.onnx", "--power", "30", "--rtol", "0.5", "--atol", "0.5", "--json", "r.json"
    )
    assert code == 0
    assert "missed" in out
    assert "norm (net.py:" in out
    assert "but it shows little: see the warnings" in out
    data = json.loads((tmp_path / "r.json").read_text())
    jsonschema.validate(data, SCHEMA)
    (finding,) = [f for f in data["findings"] if f["kind"] == "power"]
    assert finding["level"] == "warning"
    assert finding["message"].startswith("the check misses")


@pytest.mark.parametrize(
    ("last", "words"),
    [
        ([0.0] * 4, "output 'y' was 0 at every point: nothing was shown"),
        ([1, 2, 3, 4], "a constant in place of output 'y'"),
    ],
    ids=["zeros", "bias"],
)
def test_an_output_that_cannot_fail_is_no_silent_green(trtconv, tmp_path, last, words):
    write_model(tmp_path, idle_model(last))
    code, out = trtconv("check", "model.onnx", "--markdown", "r.md", "--html", "r.html")
    assert code == 0
    assert words in out.replace("\n", " ")
    assert "load real weights" in out
    assert "but it shows little" in out.replace("\n", " ")
    assert "⚠️ `model.onnx`" in (tmp_path / "r.md").read_text()
    assert 'class="verdict open"' in (tmp_path / "r.html").read_text()


def test_a_difference_is_reported_without_faults(trtconv, tmp_path):
    model = head_model("plain")
    samples = samples_of(model)
    write_model(tmp_path, head_model("plain", seed=1), samples)
    code, out = trtconv("check", "model.onnx", "--power")
    assert code == 3
    assert "small faults" not in out


@pytest.mark.parametrize(
    ("least_change", "reported", "level"),
    [(1e-5, 19, "note"), (1e-5, 17, "warning"), (2.0**-11, 12, "note"), (2.0**-11, 9, "warning")],
)
def test_a_share_that_is_low_for_the_precision_is_a_warning(least_change, reported, level):
    def tried(outcome):
        return TriedFault("scaled", "/conv", "Conv", "stem", "net.py:3", "all weights times 1.01", outcome, 0.01, "y")

    faults = (*[tried("reported")] * reported, *[tried("missed")] * (20 - reported))
    (finding,) = power_findings(PowerResult(faults, (), 0, 1.0, least_change), ())
    assert finding.level == level
    assert finding.source == "net.py:3"


def test_a_graph_in_half_precision_is_measured_in_its_own_precision(tmp_path):
    """A fault smaller than one rounding of the type is none."""
    samples = [s for s in samples_of(head_model("plain")) if s.point.values == "random"]
    path = write_model(tmp_path, head_model("plain"), samples)
    request = RewriteRequest(path, tmp_path / "model.trt.onnx", parse_target("tensorrt==10.9"), precision="fp16")
    rewrite_model(replace(request, proof=False), SilentProgress())
    power = check_model(CheckRequest(tmp_path / "model.trt.onnx", power=10)).extras["power"]
    assert power["least_change"] == 2.0**-11
    assert power["changed"] >= 5
    assert power["note"] == ""
