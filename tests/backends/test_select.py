"""Which backend, what it can do, what this machine can do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.backends.onnx_models import conv_net, plugin_net, refused_net
from trtconv.backends import select
from trtconv.backends.cuda.driver import probe_cuda, require_cuda
from trtconv.backends.probe import probe_machine
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.backends.tensorrt import library as trt_module
from trtconv.backends.tensorrt.builder.configuration import check_settings
from trtconv.backends.tensorrt.builder.graph_for_parser import known_problems, refuse
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, UnsupportedError
from trtconv.core.model.file import load_model

ROOT = Path(__file__).parents[2]
EIGHT = Capabilities("tensorrt", "8.6.0", 8, True, True, False, ("FP16", "INT8"), timing_cache=True, plugins=True)
RTX = Capabilities("tensorrt-rtx", "1.7.1.116", 11, False, False, False, compute_capabilities=("8.6", "12.0"))

needs_rtx = pytest.mark.skipif(
    not (probe_machine().versions.get("tensorrt-rtx")), reason="tensorrt-rtx is not installed"
)
no_gpu = pytest.mark.skipif(bool(probe_cuda().gpus), reason="this machine has a GPU")


def test_an_unknown_backend():
    with pytest.raises(InvalidRequestError, match="Did you mean 'tensorrt'"):
        select.choose_backend("tensort")


@pytest.mark.parametrize("family", ["tensorrt", "tensorrt-rtx"])
def test_a_missing_package_is_named_with_its_command(family, monkeypatch):
    monkeypatch.setitem(trt_module.MODULES, family, "no_such_module_here")
    with pytest.raises(MissingDependencyError) as caught:
        select.choose_backend(family).capabilities()
    assert "pip install" in caught.value.hint


def test_auto_without_any(monkeypatch):
    monkeypatch.setattr(select, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match="neither"):
        select.choose_backend("auto")


@needs_rtx
def test_capabilities_of_rtx():
    capabilities = select.choose_backend("tensorrt-rtx").capabilities()
    assert capabilities.generation == 11
    assert not capabilities.needs_gpu_to_build
    assert not capabilities.plugins
    assert capabilities.progress
    assert {"8.6", "8.9", "12.0"} <= set(capabilities.compute_capabilities)
    assert "9.0" not in capabilities.compute_capabilities


@no_gpu
def test_no_driver_is_said_so():
    with pytest.raises(MissingDependencyError, match="needs an NVIDIA GPU"):
        require_cuda("this")


def test_a_driver_that_does_not_start(tmp_path):
    """libcuda.so.1 is there but cuInit fails, as in a container without the GPU passed in."""
    source = tmp_path / "cuda.c"
    source.write_text(
        "int cuInit(unsigned f) { return 999; }\n"
        'int cuGetErrorName(int c, const char **s) { *s = "CUDA_ERROR_UNKNOWN"; return 0; }\n'
    )
    library = tmp_path / "libcuda.so.1"
    process = subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(library), str(source)], check=False)
    if process.returncode:
        pytest.skip("no C compiler")
    code = "from trtconv.backends.cuda.driver import probe_cuda; print(probe_cuda().reason)"
    run_result = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
        env={**os.environ, "LD_LIBRARY_PATH": str(tmp_path)},
    )
    assert "does not start (CUDA_ERROR_UNKNOWN)" in run_result.stdout


def test_doctor_knows_everything_and_never_raises():
    report = probe_machine()
    names = [a.name for a in report.abilities]
    assert "build with tensorrt-rtx" in names
    assert all(a.possible or a.detail for a in report.abilities)
    assert report.as_dict()["python"]


def test_plugin_nodes_are_refused_for_rtx_before_parsing(tmp_path):
    model = load_model(plugin_net(tmp_path / "plugin.onnx"))
    (problem,) = known_problems(model, RTX)
    assert "has no plugins" in problem.message
    assert not list(known_problems(model, EIGHT))


def test_bodies_of_our_own_plugins_do_not_matter(tmp_path):
    """`trtconv rewrite --plugins` writes them for ONNX Runtime; they are taken out before parsing."""
    from trtconv.plugins.onnx_form import add_functions

    model = load_model(plugin_net(tmp_path / "plugin.onnx"))
    add_functions(model)
    assert [f.name for f in model.functions] == ["TrtconvL2Norm"]
    assert not list(known_problems(model, EIGHT))
    (problem,) = known_problems(model, RTX)
    assert "has no plugins" in problem.message
    model.functions[0].domain = model.graph.node[0].domain = "another"
    (problem,) = known_problems(model, EIGHT)
    assert "local functions are not known" in problem.message


def test_a_foreign_domain_that_the_parser_would_ignore(tmp_path):
    model = load_model(conv_net(tmp_path / "m.onnx"))
    model.graph.node[1].domain = "my.domain"
    (problem,) = known_problems(model, EIGHT)
    assert "would take this for ONNX's own Relu" in problem.message


def test_what_8_6_drops_without_a_word(tmp_path):
    from onnx import helper

    model = load_model(conv_net(tmp_path / "m.onnx"))
    model.graph.node.append(helper.make_node("Shape", ["x"], ["s"], name="shape", start=1))
    model.graph.node.append(helper.make_node("ScatterND", ["x", "i", "u"], ["z"], name="scatter", reduction="add"))
    model.graph.node.append(helper.make_node("Shape", ["x"], ["whole"], name="whole", start=0))
    model.graph.node.append(helper.make_node("Shape", ["x"], ["front"], name="front", start=0, end=1))
    assert [p.node for p in known_problems(model, EIGHT)] == ["shape", "scatter", "front"]
    assert not list(known_problems(model, RTX))


def test_8_6_takes_opset_17_at_most(tmp_path):
    path = conv_net(tmp_path / "m.onnx")
    model = load_model(path)
    refuse(model, path, EIGHT)
    model.opset_import[0].version = 18
    with pytest.raises(UnsupportedError, match=r"has opset 18; TensorRT 8.6"):
        refuse(model, path, EIGHT)


@pytest.mark.parametrize(
    ("capabilities", "values", "error"),
    [
        (EIGHT, {"options": {"tf23": True}}, InvalidRequestError),
        (EIGHT, {"options": {"tf32": "maybe"}}, InvalidRequestError),
        (EIGHT, {"options": {"max_aux_streams": "many"}}, InvalidRequestError),
        (EIGHT, {"options": {"faster_dynamic_shapes": "perhaps"}}, InvalidRequestError),
        (RTX, {"options": {"faster_dynamic_shapes": "false"}}, UnsupportedError),
        (EIGHT, {"compute_capabilities": ("8.6",)}, UnsupportedError),
        (EIGHT, {"options": {"strip_plan": "true"}}, UnsupportedError),
        (RTX, {"compute_capabilities": ("9.0",)}, UnsupportedError),
        (RTX, {"timing_cache": Path("c")}, UnsupportedError),
        (RTX, {"plugins": (Path("p.so"),)}, UnsupportedError),
        (RTX, {"options": {"version_compatible": True}}, UnsupportedError),
    ],
)
def test_settings_that_cannot_be_met(capabilities, values, error):
    with pytest.raises(error):
        check_settings(capabilities, EngineSettings(Path("m.onnx"), (), **values))


@needs_rtx
def test_the_parser_is_asked_without_building(tmp_path):
    backend = select.choose_backend("tensorrt-rtx")
    assert backend.supports(conv_net(tmp_path / "good.onnx")) == ()
    assert [p.node for p in backend.supports(refused_net(tmp_path / "bad.onnx"))] == ["det0", "unique0"]
    assert [p.node for p in backend.supports(plugin_net(tmp_path / "plugin.onnx"))] == ["l2"]
