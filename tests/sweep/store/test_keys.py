"""What changes a job's key, and what does not."""

from dataclasses import replace

import pytest

from trtconv.sweep.plan.cells import Cell, Model
from trtconv.sweep.plan.jobs import Job
from trtconv.sweep.store.keys import KeyMaker

CONFIG = """
[model]
module = "net.py:net"
weights = "w.bin"
[export]
opset = 18
[build]
precision = "fp16"
[check]
rtol = 1e-4
[check.budgets]
build_seconds = 3
"""
VERSIONS = {(c, t): {"trtconv": "1", "gpu": c} for c in ("cpu", "H100", "T4") for t in ("", "tensorrt==10")}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "net.py").write_text("net")
    (tmp_path / "w.bin").write_text("weights")
    (tmp_path / "net.toml").write_text(CONFIG)
    return tmp_path


def job(kind, **facts):
    cell = Cell("net", "own", "" if kind == "export" else "tensorrt==10", "" if kind == "export" else "fp32", "")
    return replace(Job(kind, kind, cell, (), (), 1.0, 0, 60.0), **facts)


def key(folder, subject, versions=VERSIONS, upstream=None, **model):
    models = {"net": replace(Model("net", folder / "net.toml", ""), **model)}
    return KeyMaker(models, versions).key(subject, upstream or {})


def test_the_key_of_an_export(folder):
    first = key(folder, job("export"))
    assert key(folder, job("export", seconds=1.0, cpus=4.0)) == first
    (folder / "net.toml").write_text(CONFIG.replace("build_seconds = 3", "build_seconds = 4"))
    assert key(folder, job("export")) == first, "a budget decides nothing about an export"
    assert key(folder, job("export"), options=("--opset", "17")) != first
    assert key(folder, job("export"), {("cpu", ""): {"trtconv": "2"}}) != first
    for name, text in (("w.bin", "other"), ("net.py", "other"), ("net.toml", CONFIG.replace("18", "17"))):
        before = key(folder, job("export"))
        (folder / name).write_text(text)
        assert key(folder, job("export")) != before, name


def test_a_checkout_elsewhere_has_the_same_keys(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("elsewhere")
    for name in ("net.py", "w.bin", "net.toml"):
        (other / name).write_bytes((folder / name).read_bytes())
    assert key(other, job("export")) == key(folder, job("export"))


def test_keys_hang_together(folder):
    rewrite = job("rewrite", reads=("export",))
    first = key(folder, rewrite, upstream={"export": "1"})
    assert key(folder, rewrite, upstream={"export": "2"}) != first
    gpus = {key(folder, job("build", accelerator=gpu)) for gpu in ("H100", "T4")}
    assert len(gpus) == 2
    (folder / "net.toml").write_text(CONFIG.replace("build_seconds = 3", "build_seconds = 4"))
    assert key(folder, rewrite, upstream={"export": "1"}) == first


def test_weights_beside_a_graph_count(folder):
    """Two files of the same graph whose weights on disk differ are two models."""
    onnx = pytest.importorskip("onnx")
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

    weights = numpy_helper.from_array(np.ones(1024, np.float32), "w")
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "w"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1024])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [1024])],
        [weights],
    )
    path = folder / "net.onnx"
    onnx.save(helper.make_model(graph), path, save_as_external_data=True, location="net.data", size_threshold=0)
    first = key(folder, job("export"), config=None, spec=str(path))
    data = bytearray((folder / "net.data").read_bytes())
    data[0] ^= 1
    (folder / "net.data").write_bytes(data)
    assert key(folder, job("export"), config=None, spec=str(path)) != first
