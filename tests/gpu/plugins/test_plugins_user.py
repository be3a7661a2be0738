"""A plugin of the user's own, examples/user_plugin, from its rule to a checked engine.

The library comes from the environment variable TRTCONV_USER_PLUGIN_LIBRARY; else it is built here from the headers that
TENSORRT_INCLUDE_DIR names, which needs CMake and nvcc.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import trtconv
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.file import load_model, signature
from trtconv.core.progress import SilentProgress
from trtconv.core.requests import RewriteRequest
from trtconv.core.targets import parse_target
from trtconv.plugins.libraries.user_plugin import load_plugins
from trtconv.proof.points import sample_points
from trtconv.rewrite import rewrite_model

FOLDER = Path(__file__).parents[3] / "examples" / "user_plugin"
# Where the machine has no whole cuBLAS and cuDNN, which TensorRT 8.6 opens for plugins, e.g. JIT_CONVOLUTIONS.
SOURCES = os.environ.get("TRTCONV_TACTIC_SOURCES")
OPTIONS = (("tactic_sources", SOURCES),) if SOURCES else ()
KINDS = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
TOLERANCE = {np.float32: 1e-4, np.float16: 5e-3}
CHANNELS = 3


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Path:
    named = os.environ.get("TRTCONV_USER_PLUGIN_LIBRARY")
    if named:
        return Path(named).resolve()
    include = os.environ.get("TENSORRT_INCLUDE_DIR")
    if not include:
        pytest.skip("no library: TRTCONV_USER_PLUGIN_LIBRARY, or TENSORRT_INCLUDE_DIR to build it with")
    from trtconv.plugins.libraries.user_library import build_user_library

    return build_user_library(FOLDER, Path(include), tmp_path_factory.mktemp("user_plugin")).path


def sampler_model(path: Path, dtype, align: int) -> Path:
    """x, theta -> StnSampler -> y, of any N, H and W."""
    from trtconv.plugins.onnx_form import add_functions, make_node

    (sampler,) = load_plugins(FOLDER / "plugin.py")
    kind, name = KINDS[dtype], np.dtype(dtype).name
    inputs = [
        helper.make_tensor_value_info("x", kind, ["N", CHANNELS, "H", "W"]),
        helper.make_tensor_value_info("theta", kind, ["N", 2, 3]),
    ]
    node = make_node(sampler, ["x", "theta"], ["y"], "sampler", align_corners=align)
    graph = helper.make_graph([node], "g", inputs, [helper.make_tensor_value_info("y", kind, [None] * 4)])
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("trtconv", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=8)
    add_functions(model, (sampler,))
    model.metadata_props.add(key="trtconv.space", value="N=1:2:3 H=5:24:65 W=4:32:61")
    model.metadata_props.add(key="trtconv.inputs", value=f"x:{name}[N,{CHANNELS},H,W]\ntheta:{name}[N,2,3]")
    onnx.save(model, str(path))
    return path


def feeds_of(sizes: dict[str, int], number: int, dtype) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(number)
    turned = np.array([[1.0, 0, 0], [0, 1.0, 0]]) + rng.uniform(-0.4, 0.4, (sizes["N"], 2, 3))
    x = rng.standard_normal((sizes["N"], CHANNELS, sizes["H"], sizes["W"]))
    return {"x": x.astype(dtype), "theta": turned.astype(dtype)}


@pytest.mark.parametrize("align", [0, 1], ids=["centres", "corners"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["fp32", "fp16"])
def test_equal_to_the_reference_at_every_shape(tmp_path, engine_file, library, dtype, align):
    model = sampler_model(tmp_path / "sampler.onnx", dtype, align)
    engine = engine_file(model, plugins=(library,), options=OPTIONS)
    assert read_engine_manifest(engine).plugins == {library.name: sha256_file(library)}
    (sampler,) = load_plugins(FOLDER / "plugin.py")
    session = trtconv.load(engine, plugins=(library,))
    tensors = signature(load_model(model))
    points = {p.dims: p for p in sample_points(tensors.space, tensors.inputs) if p.values == "random"}
    for number, point in enumerate(points.values()):
        feeds = feeds_of(point.sizes, number, dtype)
        wide = [a.astype(np.float64) for a in feeds.values()]
        (expected,) = sampler.evaluate(wide, {"align_corners": align})
        for _ in range(2):
            actual = session(**feeds)["y"]
            assert actual.shape == expected.shape
            assert np.abs(actual.astype(np.float64) - expected).max() <= TOLERANCE[dtype] * np.abs(expected).max()
    session.close()
    assert len(points) >= 4


def exported(path: Path) -> Path:
    """An image -> theta by a linear layer of its mean -> the grid written out -> GridSample, opset 17, static H, W."""
    height, width = 24, 32
    columns, rows = ((2 * np.arange(n, dtype=np.float32) + 1) / n - 1 for n in (width, height))
    rng = np.random.default_rng(0)
    weights = {
        "w": (rng.standard_normal((CHANNELS, 6)) * 0.2).astype(np.float32),
        "b": np.array([1, 0.1, 0.05, -0.1, 0.9, 0], np.float32),
        "form": np.array([-1, 2, 3]),
        "xs": columns.reshape(1, 1, width, 1),
        "ys": rows.reshape(1, height, 1, 1),
        "five": np.array([-1, 3, 1, 1, 2]),
        "i0": np.array(0),
        "i1": np.array(1),
        "i2": np.array(2),
    }
    node = helper.make_node
    nodes = [
        node("ReduceMean", ["x"], ["m"], name="mean", axes=[2, 3], keepdims=0),
        node("Gemm", ["m", "w", "b"], ["l"]),
        node("Reshape", ["l", "form"], ["theta"]),
        node("Transpose", ["theta"], ["t"], perm=[0, 2, 1]),
        node("Reshape", ["t", "five"], ["t5"]),
        *(node("Gather", ["t5", f"i{k}"], [f"t{k}"], axis=1) for k in range(3)),
        node("Mul", ["xs", "t0"], ["a"]),
        node("Mul", ["ys", "t1"], ["c"]),
        node("Add", ["a", "c"], ["d"]),
        node("Add", ["d", "t2"], ["grid"]),
        node("GridSample", ["x", "grid"], ["y"], name="sample", mode="bilinear", padding_mode="zeros", align_corners=0),
    ]
    dims = ["N", CHANNELS, height, width]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, dims)],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    model.metadata_props.add(key="trtconv.space", value="N=1:2:4")
    model.metadata_props.add(key="trtconv.inputs", value=f"x:float32[N,{CHANNELS},{height},{width}]")
    onnx.save(model, str(path))
    return path


@pytest.fixture
def rewritten(tmp_path, backend) -> tuple[Path, Path]:
    """The exported model, and the same after the user's rule."""
    plain, output = exported(tmp_path / "plain.onnx"), tmp_path / "sampler.onnx"
    major = int(backend.capabilities().version.split(".")[0])
    target = parse_target("tensorrt==8.6" if major == 8 else f"tensorrt=={major}")
    request = RewriteRequest(plain, output, target, rule_files=(FOLDER / "plugin.py",), plugins="StnSampler")
    result = rewrite_model(request, SilentProgress())
    assert "stn-sampler" in [e.rule for e in result.entries], result.skipped + result.rejected
    assert "GridSample" not in [n.op_type for n in onnx.load(str(output)).graph.node]
    return plain, output


def test_from_the_rule_to_the_engine(rewritten, engine_file, run, library):
    from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner

    plain, model = rewritten
    session = run(engine_file(model, plugins=(library,), options=(("tf32", "false"), *OPTIONS)), plugins=(library,))
    reference = OnnxRuntimeRunner(plain)
    for batch in (1, 2, 4):
        x = np.random.default_rng(batch).standard_normal((batch, CHANNELS, 24, 32)).astype(np.float32)
        actual, expected = session(x=x)["y"], reference({"x": x})["y"]
        assert actual.shape == expected.shape
        assert np.abs(actual - expected).max() <= 1e-4 * np.abs(expected).max()


def test_the_library_has_to_be_named(rewritten, engine_file, library):
    with pytest.raises(UnsupportedError, match="StnSampler") as caught:
        engine_file(rewritten[1])
    assert "--plugin" in (caught.value.hint or "")
    engine = engine_file(rewritten[1], plugins=(library,), options=OPTIONS)
    with pytest.raises(TrtconvError, match=library.name):
        trtconv.load(engine, plugins=())
