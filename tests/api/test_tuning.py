"""`trtconv.tune`: the call of the command, and what it hands back."""

import numpy as np
import pytest

import trtconv
from tests.tune.networks import network, samples
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    import onnx

    path = tmp_path_factory.mktemp("tuning")
    onnx.save(network(), path / "net.onnx")
    rows = samples(network())
    np.savez(path / "data.npz", x=np.stack([s.inputs["x"] for s in rows]), labels=[s.label for s in rows])
    return path


@pytest.fixture(scope="module")
def tuned(folder):
    return trtconv.tune(
        folder / "net.onnx",
        dynamic={"N": "1:4:8"},
        data=folder / "data.npz",
        metric="top1",
        max_drop="5%",
        precisions=["int8"],
        target="tensorrt-rtx",
        output=folder / "out",
    )


def test_what_ships_comes_back_with_its_evidence(tuned, folder):
    assert tuned.directory == folder / "out"
    assert tuned.engine.is_file()
    assert tuned.facts["contract"]["metric"] == "top1"
    assert "chosen" in str(tuned)
    assert repr(tuned).startswith(f"<trtconv.Tuned {folder / 'out'}: int8")
    assert "<iframe" in tuned._repr_html_()


def test_a_contract_that_cannot_be_kept_raises_and_writes_nothing(folder):
    x = np.random.default_rng(3).normal(size=(64, 32)).astype(np.float32)
    outputs = OnnxRuntimeRunner(network().SerializeToString(), threads=1)({"x": x})["y"]
    np.savez(folder / "exact.npz", x=x, labels=outputs)
    with pytest.raises(trtconv.AccuracyError, match="psnr at most 1 below fp32"):
        trtconv.tune(
            folder / "net.onnx",
            dynamic={"N": "1:4:8"},
            data=folder / "exact.npz",
            metric="psnr",
            max_drop="1",
            precisions=["int8"],
            target="tensorrt-rtx",
            output=folder / "none",
        )
    assert not (folder / "none").exists()


def test_what_the_search_decides_is_not_an_argument(folder):
    with pytest.raises(trtconv.InvalidRequestError, match="takes no argument 'precision'"):
        trtconv.tune(folder / "net.onnx", precision="int8")
