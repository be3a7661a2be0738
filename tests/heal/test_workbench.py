"""Variants built for real by TensorRT-RTX; only their proof, which needs a GPU, is stood in for."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from types import SimpleNamespace

import onnx
import pytest
from onnx import parser

from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.build import build_engine
from trtconv.core.model.file import set_metadata
from trtconv.core.precision import FP16, FP32
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import BuildRequest, CheckRequest, RewriteRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.targets import parse_target
from trtconv.heal.trial import Variant
from trtconv.heal.workbench import EngineWorkbench, half_modules, unused_rules
from trtconv.rewrite import rewrite_model

pytestmark = pytest.mark.skipif(find_spec("tensorrt_rtx") is None, reason="tensorrt-rtx is not installed")
RTX = parse_target("tensorrt-rtx")
NET = """<ir_version: 10, opset_import: ['' : 20]> g (float[N,8] x) => (float[N,8] y) <float[8,8] w, float[8,8] v> {
    [product] a = MatMul(x, w) [act] b = Gelu(a) [head] y = MatMul(b, v)
}"""


@pytest.fixture(scope="module")
def half_set(tmp_path_factory):
    """An fp16 engine with the files of its conversion."""
    folder = tmp_path_factory.mktemp("set")
    model = parser.parse_model(NET.replace("'", '"'))
    for index, name in enumerate(("w", "v")):
        model.graph.initializer.append(onnx.helper.make_tensor(name, 1, (8, 8), [0.1 * (index + 1)] * 64))
    set_metadata(model, "trtconv.space", "N=1:2:4")
    set_metadata(model, "trtconv.inputs", "x:float32[N,8]")
    for node, module in zip(model.graph.node, ("body", "body", "head"), strict=True):
        node.metadata_props.add(key="trtconv.module", value=module)
    onnx.save(model, folder / "model.onnx")
    rewrite_model(
        RewriteRequest(folder / "model.onnx", folder / "model.trt.onnx", RTX, precision=FP16.name), SilentProgress()
    )
    engine = folder / "model.engine"
    build_engine(
        BuildRequest(
            folder / "model.trt.onnx",
            engine,
            backend="tensorrt-rtx",
            opt_level=2,
            workspace=1 << 28,
            dynamic=ShapeSpace(),
        )
    )
    (folder / "model.reference.safetensors").write_bytes(b"not read here")
    return engine


@pytest.fixture
def bench(half_set, tmp_path, monkeypatch):
    monkeypatch.setattr(EngineWorkbench, "_proved", lambda self, engine: SimpleNamespace(comparisons=(), passed=True))
    monkeypatch.setattr(EngineWorkbench, "_timed", lambda self, engine: None)
    return EngineWorkbench(CheckRequest(half_set), tmp_path, SilentProgress())


def types_of(model):
    return {v.name: v.type.tensor_type.elem_type for v in (*model.graph.value_info, *model.graph.output)}


def test_options_change_the_build_and_not_the_graph(bench, half_set):
    trial = bench.try_variant(Variant("opt level", "level 4", opt_level=4, options=(("max_aux_streams", "1"),)))
    assert trial.holds
    manifest = read_engine_manifest(trial.folder / "model.engine")
    assert manifest.options["max_aux_streams"] == "1"
    assert manifest.opt_level == 4
    assert manifest.profiles == read_engine_manifest(half_set).profiles
    assert (trial.folder / "model.trt.onnx").read_bytes() == half_set.with_name("model.trt.onnx").read_bytes()
    assert (trial.folder / "model.reference.safetensors").exists(), "what is shipped is a whole set"


def test_a_variant_is_built_as_the_engine_was(bench):
    trial = bench.try_variant(Variant("tactics", "one stream", options=(("max_aux_streams", "1"),)))
    manifest = read_engine_manifest(trial.folder / "model.engine")
    assert (manifest.opt_level, manifest.workspace) == (2, 1 << 28)


def test_a_node_in_fp32_is_written_and_built(bench):
    trial = bench.try_variant(Variant(FP32.name, "'act' in fp32", keep_fp32=("act",)))
    assert trial.holds
    (gelu,) = (n for n in onnx.load(trial.folder / "model.trt.onnx").graph.node if n.op_type == "Gelu")
    model = onnx.shape_inference.infer_shapes(onnx.load(trial.folder / "model.trt.onnx"))
    assert types_of(model)[gelu.output[0]] == onnx.TensorProto.FLOAT
    assert json.loads((trial.folder / "model.rewrites.json").read_text())["options"]["keep_fp32"] == ["act"]


def test_the_form_of_a_rule_that_the_target_did_not_need(bench):
    gelu = onnx.helper.make_node("Gelu", ["a"], ["b"])
    assert "gelu" in bench._forms_of(gelu)
    trial = bench.try_variant(Variant("form", "gelu apart", also=("gelu",)))
    assert trial.holds
    assert "Gelu" not in {n.op_type for n in onnx.load(trial.folder / "model.trt.onnx").graph.node}


def test_a_variant_that_changes_nothing_is_not_built(bench):
    trial = bench.try_variant(Variant("form", "no LSTM here", skip=("recurrent-layout",)))
    assert not trial.holds
    assert "the graph is the same" in trial.reason
    assert trial.folder is None


def test_without_what_was_exported_only_the_build_can_change(half_set, tmp_path):
    for path in half_set.parent.glob("model.*"):
        if path.name != "model.onnx":
            shutil.copyfile(path, tmp_path / path.name)
    (tmp_path / "work").mkdir()
    bench = EngineWorkbench(CheckRequest(tmp_path / "model.engine"), tmp_path / "work", SilentProgress())
    assert bench._forms_of(onnx.helper.make_node("Gelu", ["a"], ["b"])) == ()
    trial = bench.try_variant(Variant("form", "gelu apart", also=("gelu",)))
    assert "no exported model with a ledger" in trial.reason


def test_modules_in_half_precision(half_set):
    model = onnx.load(half_set.with_name("model.trt.onnx"))
    groups = half_modules(model, FP16.name)
    assert list(groups) == ["body", "head"]
    assert groups["body"] == ("product", "act")
    assert half_modules(model, FP32.name) == {}


def test_rules_that_are_applied_are_no_other_form(tmp_path):
    request = RewriteRequest(tmp_path / "a.onnx", tmp_path / "b.onnx", parse_target("tensorrt==8.6"))
    assert "gelu" not in unused_rules("Gelu", request)
    assert unused_rules("Sin", request) == ()
    assert unused_rules("Sin", RewriteRequest(request.model, request.output, request.target, skip=("sin-cos",))) == (
        "sin-cos",
    )
