"""`trtconv refit` up to the GPU: the weights that an engine is given, and what leaves no file."""

from dataclasses import replace

import numpy as np
import onnx
import pytest

from tests.cli.documents import validated
from trtconv.backends.tensorrt.backend import TensorRTBackend
from trtconv.backends.tensorrt.manifest import read_engine_manifest, write_manifest
from trtconv.build import build_engine
from trtconv.core.artifacts import beside
from trtconv.core.files.digest import sha256_file
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, ExportRequest, ModuleSource, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space
from trtconv.core.targets import parse_target
from trtconv.core.tensors import parse_tensor
from trtconv.export import export_model
from trtconv.rewrite import rewrite_model

pytest.importorskip("torch")
pytest.importorskip("tensorrt_rtx")
PROGRESS = SilentProgress()
NET = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(4, 8, 3, bias=False), nn.BatchNorm2d(8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.norm(self.conv(x))).mean((2, 3)))

def make(seed: int = 0):
    torch.manual_seed(seed)
    net = Net().eval()
    net.norm.running_var.uniform_(0.5, 2.0)
    return net
"""


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """An engine with its set, as a conversion with `--option refit=true` leaves it; TensorRT-RTX has no refit."""
    folder = tmp_path_factory.mktemp("refit")
    (folder / "net.py").write_text(NET)
    out = folder / "out"
    model, graph, engine = (out / name for name in ("model.onnx", "model.trt.onnx", "model.engine"))
    source = ModuleSource(f"{folder / 'net.py'}:make")
    space = parse_space(["N=1:2:3"])
    export_model(ExportRequest(source, (parse_tensor("x:float32[N,4,6,6]"),), space, model), PROGRESS)
    rewrite_model(RewriteRequest(model, graph, parse_target("tensorrt-rtx"), fold_norms=True), PROGRESS)
    build_engine(BuildRequest(graph, engine, dynamic=ShapeSpace(), backend="tensorrt-rtx"))
    write_manifest(engine, replace(read_engine_manifest(engine), options={"refit": "true"}))
    return engine


@pytest.fixture
def gpu(monkeypatch):
    """In place of a GPU: the engine keeps its bytes, and the graph whose weights it was given is checked."""
    import trtconv.check as room

    weights_of_engine = {}

    def refit(self, engine, weights, *, plugins=(), code=None):
        weights_of_engine.update(weights)
        return engine.read_bytes() + b"refitted"

    check = room.check_model

    def check_graph(request, progress, **values):
        return check(replace(request, subject=beside(request.subject, ".trt.onnx")), progress, **values)

    monkeypatch.setattr(TensorRTBackend, "refit", refit)
    monkeypatch.setattr(room, "check_model", check_graph)
    return weights_of_engine


def test_norms_are_folded_into_the_weights_that_the_engine_gets(converted, gpu, trtconv, tmp_path):
    net = f"{converted.parents[1] / 'net.py'}:make"
    code, out, err = trtconv("refit", converted, net, "--arg", "seed=1", "-o", tmp_path / "new", "--json")
    assert code == 0, err
    assert {a.shape for a in gpu.values()} >= {(8, 4, 3, 3), (2, 8), (2,)}
    assert validated(out, "refit")["weights"] == list(gpu)
    manifest = read_engine_manifest(tmp_path / "new" / "model.engine")
    assert manifest.model_files == {"model.trt.onnx": sha256_file(tmp_path / "new" / "model.trt.onnx")}
    assert manifest.reference_sha256 == sha256_file(tmp_path / "new" / "model.reference.safetensors")
    assert not [p for p in (tmp_path / "new").iterdir() if p.name.startswith(".")]


def test_an_onnx_file_with_the_weights_will_do(converted, gpu, trtconv, tmp_path):
    code, out, err = trtconv("refit", converted, beside(converted, ".onnx"), "-o", tmp_path / "new")
    assert code == 0, err
    assert not gpu
    assert "none differ" in out


def test_another_graph_is_refused_and_nothing_written(converted, gpu, trtconv, tmp_path):
    model = onnx.load(beside(converted, ".onnx"))
    next(n for n in model.graph.node if n.op_type == "Relu").op_type = "Tanh"
    onnx.save(model, tmp_path / "other.onnx")
    code, _, err = trtconv("refit", converted, tmp_path / "other.onnx", "-o", tmp_path / "new")
    assert code == 2, err
    assert "the other graph has Tanh" in err
    assert not (tmp_path / "new").exists()
    assert not gpu


def test_what_the_engine_was_not_built_for_is_told_first(converted, trtconv, tmp_path):
    engine = tmp_path / "model.engine"
    for path in converted.parent.iterdir():
        if path.is_file():
            (tmp_path / path.name).write_bytes(path.read_bytes())
    code, _, err = trtconv("refit", engine, "none.py:make", "-o", tmp_path)
    assert (code, "name another folder" in err) == (2, True), err
    (tmp_path / "model.trt.onnx").write_bytes(np.arange(9).tobytes())
    code, _, err = trtconv("refit", engine, "none.py:make", "-o", tmp_path / "new")
    assert (code, "was not built from" in err) == (2, True), err
    write_manifest(engine, replace(read_engine_manifest(engine), options={}))
    code, _, err = trtconv("refit", engine, "none.py:make", "-o", tmp_path / "new")
    assert (code, "was not built to take new weights" in err) == (4, True), err
