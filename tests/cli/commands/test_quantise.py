"""INT8 with the user's data: the graph, the engine and what is refused."""

import json

import numpy as np
import pytest

from trtconv.cli.main import run

pytest.importorskip("torch")
pytest.importorskip("tensorrt_rtx")
NET = """
import torch
from torch import nn

def make():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)).eval()
"""
LINE = ("--input", "input:float32[N,16]", "--dynamic", "N=1:2:3", "--backend", "tensorrt-rtx")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("quantise")
    (path / "net.py").write_text(NET)
    # Far from the random values of the sample points: a check there would meet nothing but saturation.
    np.save(path / "data.npy", 0.01 * np.random.default_rng(0).normal(size=(64, 16)).astype(np.float32))
    with pytest.raises(SystemExit) as ended:
        run(["convert", f"{path / 'net.py'}:make", *LINE, "-o", str(path / "out"), "--precision", "int8",
             "--data", str(path / "data.npy"), "-q"])  # fmt: skip
    assert ended.value.code == 0
    return path


def test_the_engine_is_int8_and_its_graph_fits_the_data(folder, trtconv):
    out = folder / "out"
    assert json.loads((out / "model.engine.json").read_text())["precision"] == "int8"
    ledger = json.loads((out / "model.rewrites.json").read_text())
    entries = [e for e in ledger["entries"] if e["rule"] == "quantise"]
    assert [e["module"] for e in entries] == ["0", "2"]
    assert "signal over quantisation noise" in ledger["proofs"][0]["note"]
    code, text, _ = trtconv("check", out / "model.trt.onnx")
    assert code == 0
    assert "PASSED" in text
    assert "data" in text


def test_the_exported_model_keeps_its_own_reference(folder, trtconv):
    code, text, err = trtconv("check", folder / "out" / "model.onnx")
    assert code == 0, err
    assert "PASSED" in text


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--precision", "int8"], 2, "needs data"),
        (["--precision", "fp8", "--data", "nowhere"], 2, "there is no data"),
        (["--precision", "int8", "--data", "{data}", "--calibration", "best"], 2, "best"),
        (["--precision", "fp8", "--data", "{data}", "--calibration", "entropy"], 2, "entropy"),
        (["--precision", "fp8", "--data", "{data}", "--compute-capability", "7.5"], 4, "begins at 8.9"),
        (["--rest", "fp16"], 2, "leave alone"),
    ],
)
def test_what_cannot_be_is_told_before_the_export(folder, trtconv, options, code, message):
    words = [o.format(data=folder / "data.npy") for o in options]
    line = ("convert", f"{folder / 'net.py'}:make", *LINE, "-o", folder / "none", *words)
    ended, _, err = trtconv(*line)
    assert (ended, message in err) == (code, True), err
    assert not (folder / "none").exists()


def test_random_and_constant_data_never_calibrate(folder, trtconv):
    np.save(folder / "few.npy", np.ones((64, 16), np.float32))
    code, _, err = trtconv(
        "rewrite", folder / "out" / "model.onnx", "-o", folder / "few.onnx", "--precision", "int8",
        "--data", folder / "few.npy", "--target", "tensorrt-rtx",
    )  # fmt: skip
    assert (code, "too few" in err) == (2, True), err
    assert not (folder / "few.onnx").exists()


def test_an_older_tensorrt_gets_a_graph_that_it_reads(folder, trtconv):
    import onnx

    code, _, err = trtconv(
        "rewrite", folder / "out" / "model.onnx", "-o", folder / "old.onnx", "--precision", "int8",
        "--data", folder / "data.npy", "--target", "tensorrt==8.6",
    )  # fmt: skip
    assert code == 0, err
    graph = onnx.load(folder / "old.onnx")
    assert graph.opset_import[0].version <= 17
    code, _, err = trtconv("build", folder / "old.onnx", "-o", folder / "old.engine", "--precision", "fp32", *LINE[-2:])
    assert (code, "Q/DQ pairs in int8" in err) == (2, True), err


def test_a_graph_without_pairs_is_not_built_as_int8(folder, trtconv):
    line = ("build", folder / "out" / "model.onnx", "-o", folder / "no.engine", "--precision", "int8", *LINE[-2:])
    code, _, err = trtconv(*line)
    assert (code, "no Q/DQ pairs" in err) == (2, True), err
