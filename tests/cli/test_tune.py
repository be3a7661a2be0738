"""`trtconv tune` as a user runs it: on trained networks and on ones that cannot keep a contract."""

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import onnx
import pytest

from trtconv.cli.main import run

pytest.importorskip("torch")
DIGITS = Path(__file__).parents[2] / "examples" / "digits"
NET = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)).eval()
"""
METRIC = """
import numpy as np

def closeness(outputs, labels):
    "How near the outputs are to those of FP32, which are the labels: nothing but FP32 itself is exact."
    return -float(np.abs(outputs["output"] - np.stack(labels)).max())
"""
LINE = ("--input", "input:float32[N,16]", "--dynamic", "N=1:2:3", "--target", "tensorrt-rtx")


def ended(*words):
    with pytest.raises(SystemExit) as caught:
        run([str(w) for w in words])
    return int(caught.value.code or 0)


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tune") / "out"
    config = DIGITS / "trtconv.toml"
    assert ended("tune", "--config", config, "-o", folder, "--target", "tensorrt-rtx", "-q") == 0
    return folder


def test_the_digits_keep_their_contract_in_int8(out):
    facts = json.loads((out / "model.tune.json").read_text())
    assert facts["fp32"]["judging"] > 0.9
    assert facts["shipped"]["judging"] >= facts["contract"]["lowest"]
    assert facts["shipped"]["judging"] == facts["chosen"]["judging"]
    assert facts["chosen"]["shares"]["int8"] > 0.5
    assert facts["data"]["parts"] == {"calibration": 225, "search": 270, "judging": 405}
    assert "not known" in facts["speed"]


def test_what_ships_is_what_the_ledger_says(out):
    facts = json.loads((out / "model.tune.json").read_text())
    entries = json.loads((out / "model.rewrites.json").read_text())["entries"]
    quantised = {e["node"] for e in entries if e["rule"] == "quantise"}
    assert quantised == set(facts["chosen"]["rewrite"]["quantise_only"])
    graph = onnx.load(out / "model.trt.onnx").graph
    assert sum(n.op_type == "QuantizeLinear" for n in graph.node) >= 2 * len(quantised)
    assert not (out / "model.tune-state.json").exists()


def test_the_report_has_both_pictures(out):
    page = (out / "model.report.html").read_text()
    pictures = [p.split("</svg>")[0] + "</svg>" for p in page.split("<svg ")[1:]]
    drawn = [ET.fromstring("<svg " + p) for p in pictures]
    labels = [d.attrib.get("aria-label", "") for d in drawn]
    assert any("candidates by cost" in text for text in labels)
    assert any("sensitivity of" in text and "int8" in text for text in labels)
    assert "Contract kept" in page
    assert "body.0" in page


@pytest.fixture(scope="module")
def linear(tmp_path_factory):
    folder = tmp_path_factory.mktemp("linear")
    (folder / "net.py").write_text(NET)
    (folder / "metric.py").write_text(METRIC)
    import torch

    scope = {}
    exec(NET, scope)
    x = np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32)
    with torch.inference_mode():
        y = scope["make"]()(torch.from_numpy(x)).numpy()
    np.savez(folder / "data.npz", input=x, labels=y)
    return folder


def test_a_contract_that_cannot_be_kept_writes_nothing(linear, trtconv):
    code, _, err = trtconv(
        "tune", f"{linear / 'net.py'}:make", *LINE, "--data", linear / "data.npz", "--precisions", "int8",
        "--metric", f"{linear / 'metric.py'}:closeness", "--max-drop", "0.0001", "-o", linear / "none",
    )  # fmt: skip
    assert (code, "no candidate keeps the contract" in err) == (3, True), err
    assert "int8 in" in err
    assert not (linear / "none").exists()


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--metric", "top-1", "--data", "{data}"], 2, "Did you mean 'top1'"),
        (["--max-drop", "half", "--data", "{data}"], 2, "largest drop"),
        (["--precisions", "int4", "--data", "{data}"], 2, "no precision to search in"),
        ([], 2, "needs data"),
        (["--precisions", "fp8", "--data", "{data}", "--target", "tensorrt==8.6"], 4, "has no fp8"),
        (["--precisions", "fp8", "--data", "{data}", "--compute-capability", "7.5"], 4, "begins at 8.9"),
    ],
)
def test_what_cannot_be_is_told_before_the_export(linear, trtconv, options, code, message):
    words = [o.format(data=linear / "data.npz") for o in options]
    result, _, err = trtconv("tune", f"{linear / 'net.py'}:make", *LINE, "-o", linear / "none", *words)
    assert (result, message in err) == (code, True), err
    assert not (linear / "none").exists()


def test_a_ledger_repeats_the_result(linear, trtconv):
    line = ("tune", f"{linear / 'net.py'}:make", *LINE, "--metric", f"{linear / 'metric.py'}:closeness")
    line = (*line, "--data", linear / "data.npz", "--max-drop", "1.0", "--precisions", "int8")
    assert trtconv(*line, "-o", linear / "first")[0] == 0
    ledger = linear / "first" / "model.tune.json"
    code, out, err = trtconv(*line, "-o", linear / "again", "--repeat", ledger, "--json")
    assert code == 0, err
    first = json.loads(ledger.read_text())["shipped"]
    assert json.loads(out)["shipped"] == first
