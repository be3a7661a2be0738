"""Engines with each of the plugins, built and loaded by trtconv itself, give what the NumPy reference gives.

The library comes from the environment variable TRTCONV_PLUGIN_LIBRARY, else it is the one that `trtconv plugins build`
made here for this TensorRT.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import trtconv
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import load_model, signature
from trtconv.plugins.described.registry import find_plugin
from trtconv.plugins.onnx_form import add_functions, make_node
from trtconv.proof.points import sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

ROOT = Path(__file__).parents[3]
KINDS = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
TOLERANCE = {np.float32: 1e-5, np.float16: 2e-3}
CHANNELS = 24
SPACE = "N=1:2:3 H=7:24:65 W=7:32:61"
# Channels last: `inner` is 1 and a warp takes a row.
CASES = {
    "l2norm": ("TrtconvL2Norm", {"axis": 1, "epsilon": 1e-10}),
    "l2norm_inside": ("TrtconvL2Norm", {"axis": 1, "epsilon": 1e-4, "eps_mode": 1}),
    "l2norm_last": ("TrtconvL2Norm", {"axis": 3, "epsilon": 1e-10}),
    "instance_norm": ("TrtconvInstanceNorm", {"epsilon": 1e-5}),
    "instance_norm_relu": ("TrtconvInstanceNorm", {"epsilon": 1e-5, "relu": 1}),
    "reflection_pad": ("TrtconvReflectionPad", {"pads": [0, 4, 6, 3]}),
    "average_pool": ("TrtconvAdaptivePool", {"output_size": [7, 5], "mode": 0}),
    "max_pool": ("TrtconvAdaptivePool", {"output_size": [6, 6], "mode": 1}),
    "depthwise": ("TrtconvDepthwiseConvLayerNorm", {"channels": CHANNELS, "epsilon": 1e-6}),
}


@pytest.fixture(scope="module")
def library(backend) -> Path:
    from trtconv.plugins.libraries.library import find_library

    named = os.environ.get("TRTCONV_PLUGIN_LIBRARY")
    if named:
        return Path(named).resolve()
    library_path = find_library(int(backend.capabilities().version.split(".")[0]))
    if library_path is None:
        pytest.skip("no plugin library: `trtconv plugins build`, or TRTCONV_PLUGIN_LIBRARY")
    return library_path.path


def model_of(folder: Path, case: str, dtype) -> Path:
    """x -> plugin -> y, x of any N, H and W in `SPACE`; scale and bias are initialisers."""
    op_type, attributes = CASES[case]
    plugin = find_plugin(op_type)
    last = attributes.get("axis") == 3 or "channels" in attributes
    rng = np.random.default_rng(0)
    weights = {
        "scale": rng.uniform(0.5, 1.5, CHANNELS).astype(dtype),
        "bias": rng.standard_normal(CHANNELS).astype(dtype),
        "shift": rng.standard_normal(CHANNELS).astype(dtype),
        "weight": (rng.standard_normal((7, 7, CHANNELS)) / 7).astype(dtype),
    }
    used = [t.name for t in plugin.inputs if t.name in weights]
    dims = ["N", "H", "W", CHANNELS] if last else ["N", CHANNELS, "H", "W"]
    kind, name = KINDS[dtype], np.dtype(dtype).name
    graph = helper.make_graph(
        [make_node(plugin, ["x", *used], ["y"], case, **attributes)],
        "g",
        [helper.make_tensor_value_info("x", kind, dims)],
        [helper.make_tensor_value_info("y", kind, [None] * 4)],
        [numpy_helper.from_array(weights[n], n) for n in used],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    model.metadata_props.add(key="trtconv.space", value=SPACE)
    model.metadata_props.add(key="trtconv.inputs", value=f"x:{name}[{','.join(map(str, dims))}]")
    path = folder / f"{case}_{name}.onnx"
    onnx.save(model, str(path))
    return path


def wanted_of(case: str, model: Path, x: np.ndarray) -> np.ndarray:
    op_type, attributes = CASES[case]
    plugin = find_plugin(op_type)
    weights = {t.name: numpy_helper.to_array(t) for t in onnx.load(str(model)).graph.initializer}
    inputs = [x, *(weights[t.name] for t in plugin.inputs if t.name in weights)]
    wide = [a.astype(np.float64) for a in inputs]
    return plugin.reference(wide, plugin.checked_attributes(attributes))[0]


def inputs_at(model: Path):
    """The sample points of the model with random values that lie off zero, as channels of a network do."""
    tensors = signature(load_model(model))
    for number, point in enumerate(p for p in sample_points(tensors.space, tensors.inputs) if p.values == "random"):
        shape = tuple(point.sizes.get(d, d) for d in tensors.inputs[0].dims)
        rng = np.random.default_rng(number)
        yield (rng.standard_normal(shape) * 3 + 1).astype(tensors.inputs[0].dtype.numpy())


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    assert actual.shape == expected.shape
    assert np.isfinite(actual).all()
    return float(np.abs(actual.astype(np.float64) - expected).max() / np.abs(expected).max())


def write_numpy_reference(model: Path, case: str, path: Path) -> Path:
    """What `trtconv check` compares with: the inputs of every point and the NumPy reference's outputs."""
    tensors = signature(load_model(model))
    points = [p for p in sample_points(tensors.space, tensors.inputs) if p.values == "random"]
    samples = [
        ReferenceSample(point, {"x": x}, {"y": wanted_of(case, model, x).astype(x.dtype)})
        for point, x in zip(points, inputs_at(model), strict=True)
    ]
    write_reference(path, ReferenceInfo(tuple(points), tensors.inputs, ("y",), tensors.space), samples)
    return path


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["fp32", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_equal_at_every_shape(tmp_path, engine_file, library, case, dtype):
    model = model_of(tmp_path, case, dtype)
    engine = engine_file(model, plugins=(library,))
    manifest = read_engine_manifest(engine)
    assert manifest.plugins == {library.name: sha256_file(library)}
    session = trtconv.load(engine, plugins=(library,))
    worst, points = 0.0, 0
    for x in inputs_at(model):
        for _ in range(2):  # the second run has the buffers of the first
            worst = max(worst, relative_error(session(x=x)["y"], wanted_of(case, model, x)))
        points += 1
    session.close()
    assert points >= 4
    assert worst <= TOLERANCE[dtype]


@pytest.mark.parametrize("case", ["l2norm", "instance_norm", "reflection_pad"])
def test_in_a_cuda_graph(tmp_path, engine_file, run, library, case):
    model = model_of(tmp_path, case, np.float32)
    session = run(engine_file(model, plugins=(library,)), plugins=(library,))
    session.cuda_graph = True
    for _ in range(3):
        for x in inputs_at(model):
            assert relative_error(session(x=x)["y"], wanted_of(case, model, x)) <= 1e-5


def test_between_other_layers(tmp_path, engine_file, run, library):
    """Convolutions around the plugin ask TensorRT for other formats and types than the plugin's."""
    model = onnx.load(str(model_of(tmp_path, "reflection_pad", np.float32)))
    rng = np.random.default_rng(1)
    weights = rng.standard_normal((CHANNELS, CHANNELS, 3, 3)).astype(np.float32) / 15
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    pad = model.graph.node[0]
    pad.input[0], pad.output[0] = "c", "p"
    first = helper.make_node("Conv", ["x", "w"], ["c"], name="before", pads=[1] * 4)
    del model.graph.node[:]
    model.graph.node.extend([first, pad, helper.make_node("Conv", ["p", "w"], ["y"], name="after")])
    path = tmp_path / "between.onnx"
    onnx.save(model, str(path))
    session = run(engine_file(path, plugins=(library,), options=(("tf32", "false"),)), plugins=(library,))
    reference = OnnxRuntimeRunner(with_bodies(path, tmp_path / "runnable.onnx"))
    for x in inputs_at(path):
        assert relative_error(session(x=x)["y"], reference({"x": x})["y"].astype(np.float64)) <= 1e-4


def with_bodies(model: Path, path: Path) -> Path:
    """The model as `trtconv rewrite --plugins` writes it: with the function bodies that ONNX Runtime runs."""
    loaded = onnx.load(str(model))
    add_functions(loaded)
    onnx.save(loaded, str(path))
    return path


def command(*words: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    line = [sys.executable, "-m", "trtconv", *map(str, words)]
    return subprocess.run(line, capture_output=True, text=True, env=environment, timeout=300, check=False)


def test_the_command_line_builds_and_checks(tmp_path, library):
    model = with_bodies(model_of(tmp_path, "instance_norm_relu", np.float32), tmp_path / "model.onnx")
    engine = tmp_path / "model.engine"
    process = command("build", model, "-o", engine, "--dynamic", "--backend", "tensorrt", "--plugin", library)
    assert process.returncode == 0, process.stderr
    reference = write_numpy_reference(model, "instance_norm_relu", tmp_path / "reference.safetensors")
    process = command("check", engine, "--reference", reference, "--plugin", library, "--json", "-")
    assert process.returncode == 0, process.stdout + process.stderr
    report = json.loads(process.stdout)
    assert report["passed"]
    assert len({c["point"] for c in report["comparisons"]}) >= 4


def test_an_engine_without_its_library(tmp_path, engine_file, library):
    engine = engine_file(model_of(tmp_path, "l2norm", np.float32), plugins=(library,))
    with pytest.raises(TrtconvError, match=f"needs the plugin library {library.name}") as caught:
        trtconv.load(engine, plugins=())
    assert "--plugin" in (caught.value.hint or "")


def test_a_model_without_a_library(tmp_path, engine_file, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "nothing"))
    with pytest.raises(UnsupportedError, match="needs the plugins TrtconvL2Norm") as caught:
        engine_file(model_of(tmp_path, "l2norm", np.float32))
    assert "trtconv plugins build" in (caught.value.hint or "")


def test_a_library_that_is_not_there(tmp_path, engine_file):
    with pytest.raises(TrtconvError, match=r"libnone\.so"):
        engine_file(model_of(tmp_path, "l2norm", np.float32), plugins=(tmp_path / "libnone.so",))


def test_a_library_with_other_bytes_than_the_manifest_says(tmp_path, engine_file, library):
    engine = engine_file(model_of(tmp_path, "l2norm", np.float32), plugins=(library,))
    other = tmp_path / "other" / library.name
    other.parent.mkdir()
    other.write_bytes(library.read_bytes() + b"\0")
    with pytest.raises(TrtconvError, match="plugin library") as caught:
        trtconv.load(engine, plugins=(other,))
    assert library.name in str(caught.value)


def test_a_manifest_that_names_other_bytes_was_changed(tmp_path, engine_file, library):
    engine = engine_file(model_of(tmp_path, "l2norm", np.float32), plugins=(library,))
    path = manifest_path(engine)
    data = json.loads(path.read_text())
    data["plugins"][library.name] = "0" * 64
    path.write_text(json.dumps(data))
    with pytest.raises(TrtconvError, match="was changed after it was written"):
        trtconv.load(engine, plugins=(library,))


def test_a_second_library_with_the_same_names(tmp_path, library):
    """In a process of its own, since a registry keeps what it loaded."""
    other = tmp_path / "libother.so"
    shutil.copy(library, other)
    model = model_of(tmp_path, "l2norm", np.float32)
    process = command(
        "build", model, "-o", tmp_path / "two.engine", "--dynamic", "--backend", "tensorrt", "--plugin", library,
        "--plugin", other,
    )  # fmt: skip
    assert process.returncode not in (0, 1, 139), process.stderr
    assert "libother.so" in process.stderr
    assert not (tmp_path / "two.engine").exists()
