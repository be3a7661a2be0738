"""`trtconv tune` on the GPU: engines are built, judged and timed, and what ships is what its ledger says."""

from __future__ import annotations

import json

import numpy as np
import onnx
import pytest

from tests.gpu.gate_files import call
from tests.tune.networks import network, samples
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model file of opset 17, with data for it."""
    path = tmp_path_factory.mktemp("tune")
    model = network()
    model.opset_import[0].version = 17
    rows = samples(model)
    onnx.save(model, path / "net.onnx")
    x = np.stack([s.inputs["x"] for s in rows])
    np.savez(path / "data.npz", x=x, labels=[s.label for s in rows])
    np.savez(path / "exact.npz", x=x, labels=OnnxRuntimeRunner(path / "net.onnx")({"x": x})["y"])
    return path


def tune(folder, data, *words):
    return call("tune", folder / "net.onnx", "--dynamic", "N=1:8:32", "--target", "tensorrt==8.6", "--backend",
                "tensorrt", "--data", folder / data, *words)  # fmt: skip


def test_the_engine_that_ships_keeps_the_contract_or_none_does(folder):
    out = folder / "out"
    words = ("--metric", "top1", "--max-drop", "3%", "--precisions", "fp16,int8", "-o", out)
    code, shown, told = tune(folder, "data.npz", *words)
    # A network this small may be no faster in low precision; then nothing ships.
    assert code in (0, 6), told
    if code == 6:
        assert "is faster than fp32" in told
        assert not out.exists()
        return
    facts = json.loads((out / "model.tune.json").read_text())
    assert facts["speed"] == "measured on the engine"
    assert facts["chosen"]["seconds"] < facts["baseline"]["seconds"]
    assert facts["shipped"]["engine_judging"] >= facts["contract"]["lowest"]
    assert facts["shipped"]["engine_layers"]["layers"]
    assert "times as fast" in shown


def test_a_contract_that_no_engine_keeps_leaves_nothing(folder):
    out = folder / "none"
    code, _, told = tune(folder, "exact.npz", "--metric", "psnr", "--max-drop", "1", "--precisions", "int8", "-o", out)
    assert code == 3, told
    assert "no candidate keeps the contract" in told
    assert not out.exists()
