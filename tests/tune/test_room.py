"""From an exported model to what ships, without torch: files, ledger, report, and nothing where it fails."""

import json
import xml.etree.ElementTree as ET
from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.tune.networks import RTX, network, samples
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import AccuracyError, InvalidRequestError, UnsupportedError
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.requests.tune import ContractRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import parse_target
from trtconv.foreign.request import ForeignRequest
from trtconv.tune.room import TuneRequest, require_possible, tune, tune_exported

PROGRESS = SilentProgress()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("tune")
    rows = samples(network())
    np.savez(path / "data.npz", x=np.stack([s.inputs["x"] for s in rows]), labels=[s.label for s in rows])
    return path


def request(folder, output="out", **contract):
    contract.setdefault("max_drop", "3%")
    rewrite = RewriteRequest(folder, folder, RTX, data=str(folder / "data.npz"))
    build = BuildRequest(folder, folder, dynamic=ShapeSpace(), backend="tensorrt-rtx")
    export = ExportRequest(source=ModuleSource(""), output=folder, inputs=(), space=ShapeSpace())
    return TuneRequest(export, rewrite, build, ContractRequest(**contract), folder / output)


def tuned_as(request, work):
    work.mkdir(exist_ok=True)
    onnx.save(network(), work / "model.onnx")
    return tune_exported(request, work, require_possible(request), PROGRESS)


@pytest.fixture(scope="module")
def result(folder, tmp_path_factory):
    pytest.importorskip("tensorrt_rtx")
    return tuned_as(request(folder), tmp_path_factory.mktemp("work"))


def ledger(result):
    return json.loads((result.folder / "model.tune.json").read_text())


def test_int8_beside_fp16_ships_with_its_evidence(result):
    facts = ledger(result)
    assert facts["chosen"]["shares"] == {"fp16": 0.25, "int8": 0.75}
    assert facts["chosen"]["groups"] == ["a", "b", "head"]
    assert facts["shipped"]["judging"] == facts["chosen"]["judging"] >= facts["contract"]["lowest"]
    assert facts["data"]["parts"] == {"calibration": 100, "search": 120, "judging": 180}
    assert "not known" in facts["speed"]
    names = {p.name for p in result.files}
    assert names >= {"model.trt.onnx", "model.engine", "model.rewrites.json", "model.tune.json", "model.report.html"}
    assert not (result.folder / "model.tune-state.json").exists()
    assert not (result.folder / "plain.onnx").exists()


def test_the_graph_that_ships_has_the_pairs_that_the_ledger_names(result):
    entries = json.loads((result.folder / "model.rewrites.json").read_text())["entries"]
    quantised = [e["node"] for e in entries if e["rule"] == "quantise"]
    assert quantised == ledger(result)["chosen"]["rewrite"]["quantise_only"]
    graph = onnx.load(result.folder / "model.trt.onnx").graph
    assert sum(n.op_type == "QuantizeLinear" for n in graph.node) == 6


def test_the_report_has_both_pictures(result):
    page = (result.folder / "model.report.html").read_text()
    drawn = [ET.fromstring("<svg " + p.split("</svg>")[0] + "</svg>") for p in page.split("<svg ")[1:]]
    labels = [d.attrib.get("aria-label", "") for d in drawn]
    assert sum("candidates by cost" in text for text in labels) == 1
    assert [text for text in labels if "sensitivity" in text and "int8" in text] == ["sensitivity of 4 modules in int8"]
    assert "Contract kept" in page
    assert "speed is not known" in page


def test_a_ledger_repeats_the_result(folder, result, tmp_path):
    parsed_model = replace(request(folder, "again"), repeat=result.folder / "model.tune.json")
    again = tuned_as(parsed_model, tmp_path)
    assert ledger(again)["shipped"] == ledger(result)["shipped"]
    assert (again.folder / "model.trt.onnx").read_bytes() == (result.folder / "model.trt.onnx").read_bytes()


def test_a_model_file_needs_no_module(folder, tmp_path):
    pytest.importorskip("tensorrt_rtx")
    onnx.save(network(), tmp_path / "net.onnx")
    asked = request(folder, "from_file", precisions=("fp16",))
    result = tune(replace(asked, export=ForeignRequest(tmp_path / "net.onnx", folder)), PROGRESS)
    assert ledger(result)["chosen"]["precision"] == "fp16"
    assert json.loads((result.folder / "model.onnx.json").read_text())["source"]["foreign"]


def test_a_contract_that_cannot_be_kept_writes_nothing(folder, tmp_path):
    runner = OnnxRuntimeRunner(network().SerializeToString(), threads=1)
    x = np.random.default_rng(3).normal(size=(64, 32)).astype(np.float32)
    np.savez(tmp_path / "exact.npz", x=x, labels=runner({"x": x})["y"])
    tune_request = request(folder, "none", metric="psnr", max_drop="1", precisions=("int8",))
    tune_request = replace(tune_request, rewrite=replace(tune_request.rewrite, data=str(tmp_path / "exact.npz")))
    with pytest.raises(AccuracyError, match="psnr at most 1 below fp32"):
        tuned_as(tune_request, tmp_path / "work")
    assert not (folder / "none").exists()


@pytest.mark.parametrize(
    ("contract", "target", "error", "message"),
    [
        ({"metric": "top-1"}, RTX, InvalidRequestError, "Did you mean 'top1'"),
        ({"max_drop": "half"}, RTX, InvalidRequestError, "largest drop"),
        ({"precisions": ("fp8",)}, parse_target("tensorrt==8.6"), UnsupportedError, "has no fp8"),
    ],
)
def test_what_cannot_be_is_told_first(folder, contract, target, error, message):
    tune_request = request(folder, "none", **contract)
    with pytest.raises(error, match=message):
        require_possible(replace(tune_request, rewrite=replace(tune_request.rewrite, target=target)))
    with pytest.raises(InvalidRequestError, match="needs data"):
        require_possible(replace(request(folder), rewrite=replace(tune_request.rewrite, data="")))


def test_labels_are_wanted(folder, tmp_path):
    np.save(tmp_path / "bare.npy", np.random.default_rng(0).normal(size=(64, 32)).astype(np.float32))
    tune_request = request(folder, "none")
    tune_request = replace(tune_request, rewrite=replace(tune_request.rewrite, data=str(tmp_path / "bare.npy")))
    with pytest.raises(InvalidRequestError, match="have none"):
        tuned_as(tune_request, tmp_path / "work")
    assert not (folder / "none").exists()
