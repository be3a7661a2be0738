"""The build room with TensorRT-RTX, which builds on a machine without a GPU."""

import json
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import onnx
import onnx.parser
import pytest

from tests.backends.onnx_models import conv_net, expand_net, nonzero_net, plugin_net, refused_net, token_net
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.backends.tensorrt.plan_header import read_plan_header
from trtconv.build import build_engine
from trtconv.build.inspection import engine_facts
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace, parse_space

ROOT = Path(__file__).parents[2]
pytestmark = pytest.mark.skipif(find_spec("tensorrt_rtx") is None, reason="tensorrt-rtx is not installed")


class Recorder:
    """Keeps what a room tells."""

    def __init__(self):
        self.phases, self.warnings = [], []

    def stage(self, name):
        pass

    def phase(self, name, process=0, total=0):
        self.phases.append((name, process, total))

    def note(self, text):
        pass

    def warn(self, text):
        self.warnings.append(text)


def build(model: Path, progress=None, **values):
    values.setdefault("dynamic", ShapeSpace())
    return build_engine(BuildRequest(model, model.with_suffix(".engine"), backend="tensorrt-rtx", **values), progress)


def test_the_recorded_ranges(tmp_path):
    result = build(conv_net(tmp_path / "m.onnx"))
    assert result.profiles == ({"x": ((1, 3, 16, 16), (2, 3, 32, 32), (4, 3, 64, 64))},)
    assert result.engine_bytes == result.engine.stat().st_size > 1000
    assert result.layers == 2
    assert result.manifest == manifest_path(result.engine)
    assert read_plan_header(result.engine).version_text == result.version


def test_the_builder_s_own_phases_are_shown(tmp_path):
    progress = Recorder()
    build(conv_net(tmp_path / "m.onnx"), progress)
    assert any(total > 0 for _, _, total in progress.phases)


def test_static_at_opt(tmp_path):
    result = build(conv_net(tmp_path / "m.onnx"), dynamic=None)
    assert result.profiles == ({"x": ((2, 3, 32, 32),) * 3},)
    assert str(read_engine_manifest(result.engine).space) == "N=2:2:2 H=32:32:32 W=32:32:32"


def test_ranges_of_one_s_own_and_none_beyond_the_proven_ones(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    result = build(model, dynamic=parse_space(["H=16:32:48%8 N=3"]))
    assert result.profiles[0]["x"] == ((3, 3, 16, 16), (3, 3, 32, 32), (3, 3, 48, 64))
    with pytest.raises(InvalidRequestError, match="H=16:32:128%8 goes beyond H=") as caught:
        build(model, dynamic=parse_space(["H=16:32:128%8 N=3"]))
    assert "--dynamic H=16:32:128%8" in caught.value.hint


def test_several_profiles(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    result = build(model, profiles=(parse_space(["N=1 H=16 W=16"]), parse_space(["N=2:2:4"])))
    assert [p["x"][2] for p in result.profiles] == [(1, 3, 16, 16), (4, 3, 64, 64)]


def test_a_foreign_file_needs_ranges(tmp_path):
    model = conv_net(tmp_path / "m.onnx", recorded=False)
    for dynamic in (None, ShapeSpace(), parse_space(["N=1:2:3"])):
        with pytest.raises(InvalidRequestError, match="nothing says how large") as caught:
            build(model, dynamic=dynamic)
        assert "--dynamic" in caught.value.hint
    assert build(model, dynamic=parse_space(["N=1:2:3 H=16:32:64 W=32"])).profiles


def test_inputs_named_on_the_command_line(tmp_path):
    from trtconv.core.tensors import parse_tensor

    model = conv_net(tmp_path / "m.onnx", recorded=False)
    named = (parse_tensor("x:float32[B,3,S,S]"),)
    result = build(model, inputs=named, dynamic=parse_space(["B=1:2:3 S=16:32:64"]))
    assert result.profiles[0]["x"] == ((1, 3, 16, 16), (2, 3, 32, 32), (3, 3, 64, 64))
    fixed = build(model, inputs=(parse_tensor("x:float32[4,3,24,24]"),), dynamic=None)
    assert fixed.profiles == ({},)
    for text, words in (
        ("z:float32[B,3,S,S]", "has no input 'z'"),
        ("x:int64[B,3,S,S]", "is float32 in the model"),
        ("x:float32[B,3,S]", "has 4 dims"),
        ("x:float32[B,4,S,S]", "is fixed at 3"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            build(model, inputs=(parse_tensor(text),), dynamic=parse_space(["B=1:2:3 S=16:32:64"]))


def test_an_unknown_dim_has_a_suggestion(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    with pytest.raises(InvalidRequestError, match="no input has a dim called 'Height'"):
        build(model, dynamic=parse_space(["Height=1:2:3"]))
    with pytest.raises(InvalidRequestError, match="no input has a dim called 'HH'"):
        build(model, profiles=(parse_space(["HH=1:2:3"]),))


def test_every_refused_node_with_its_line(tmp_path):
    with pytest.raises(UnsupportedError) as caught:
        build(refused_net(tmp_path / "m.onnx"))
    assert caught.value.where == "net.py:31"
    assert caught.value.details == (
        "Det 'det0' from head.det0 (net.py:31): there is no importer for Det",
        "Unique 'unique0' from head.unique0 (net.py:44): there is no importer for Unique",
    )
    assert sorted(p.name for p in tmp_path.iterdir()) == ["m.onnx"]


def test_plugin_nodes(tmp_path):
    with pytest.raises(UnsupportedError, match="does not take a node") as caught:
        build(plugin_net(tmp_path / "m.onnx"))
    assert "has no plugins" in caught.value.details[0]


def test_a_node_that_only_the_build_refuses_is_named(tmp_path):
    with pytest.raises(UnsupportedError) as caught:
        build(nonzero_net(tmp_path / "m.onnx"))
    assert "nonzero" in " ".join(caught.value.details)


def test_a_shape_tensor_takes_its_values_from_the_range(tmp_path):
    assert build(expand_net(tmp_path / "m.onnx")).engine_bytes > 0


def test_integers(tmp_path):
    assert build(token_net(tmp_path / "m.onnx")).profiles == ({"ids": ((1, 1), (2, 8), (4, 16))},)


def test_external_weights(tmp_path):
    result = build(conv_net(tmp_path / "m.onnx", external=True))
    assert set(read_engine_manifest(result.engine).model_files) == {"m.onnx", "m.onnx.data"}
    (tmp_path / "m.onnx.data").unlink()
    with pytest.raises(Exception, match=r"m.onnx|initializer|weights"):
        build(tmp_path / "m.onnx")


@pytest.mark.parametrize(("dtype", "precision", "good"), [
    (np.float32, "fp32", True), (np.float16, "fp16", True), (np.float16, "fp32", False),
    (np.float32, "fp16", False), (np.float32, "bf16", False), (np.float32, "fp8", False),
])  # fmt: skip
def test_the_graph_carries_its_types(tmp_path, dtype, precision, good):
    model = conv_net(tmp_path / "m.onnx", dtype=dtype)
    if good:
        assert read_engine_manifest(build(model, precision=precision).engine).types[np.dtype(dtype).name] > 0
        return
    with pytest.raises(InvalidRequestError, match=precision):
        build(model, precision=precision)


def test_compute_capabilities(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    result = build(model, compute_capabilities=("8.6", "8.9", "12.0"))
    assert read_engine_manifest(result.engine).compute_capabilities == ("8.6", "8.9", "12.0")
    with pytest.raises(UnsupportedError, match=r"cannot build for compute capability 9.0"):
        build(model, compute_capabilities=("9.0",))


def test_settings_reach_the_builder(tmp_path):
    result = build(conv_net(tmp_path / "m.onnx"), workspace=1 << 28, opt_level=1, options=(("tf32", True),))
    assert read_engine_manifest(result.engine).options == {"tf32": True}


def test_an_older_engine_is_kept_when_the_build_fails(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    engine = build(model).engine
    before = engine.read_bytes(), manifest_path(engine).read_bytes()
    refused_net(model)
    with pytest.raises(UnsupportedError):
        build(model)
    assert (engine.read_bytes(), manifest_path(engine).read_bytes()) == before


def test_a_crash_between_engine_and_manifest_is_seen(tmp_path):
    model = conv_net(tmp_path / "m.onnx")
    engine = build(model).engine
    old = manifest_path(engine).read_bytes()
    build(model, dynamic=None)
    manifest_path(engine).write_bytes(old)
    with pytest.raises(InvalidRequestError, match="is not the engine"):
        read_engine_manifest(engine)
    with pytest.raises(InvalidRequestError, match="is not the engine"):
        engine_facts(engine)
    manifest_path(engine).unlink()
    assert "none beside it" in engine_facts(engine)["manifest"]


def test_inspection(tmp_path):
    facts = engine_facts(build(conv_net(tmp_path / "m.onnx")).engine, layers=True)
    assert facts["shape space"] == "N=1:2:4 H=16:32:64%8 W=16:32:64%8"
    assert facts["profile 0"] == ["x 1x3x16x16 / 2x3x32x32 / 4x3x64x64"]
    assert json.dumps(facts, default=str)


def test_ctrl_c_cancels_the_build(tmp_path):
    """The signal arrives while the builder works; nothing is left, and the exit is not a crash."""
    model = conv_net(tmp_path / "m.onnx", depth=60, channels=160)
    code = (
        "import os, signal, sys\n"
        "from trtconv.cli.main import run\n"
        "from trtconv.cli.console import ConsoleProgress\n"
        "def phase(self, name, done=0, total=0, sent=[]):\n"
        "    if total and not sent:\n"
        "        sent.append(1); os.kill(os.getpid(), signal.SIGINT)\n"
        "ConsoleProgress.phase = phase\n"
        f"run(['build', {str(model)!r}, '--dynamic', '--backend', 'tensorrt-rtx'])\n"
    )
    start = time.monotonic()
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert process.returncode == 130, process.stderr
    assert "interrupted" in process.stderr
    assert "Traceback" not in process.stderr
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
    assert time.monotonic() - start < 60


def test_the_precision_is_the_graphs_own_when_none_is_asked_for(tmp_path):
    half = build(conv_net(tmp_path / "half.onnx", dtype=np.float16), precision="auto")
    assert read_engine_manifest(half.engine).precision == "fp16"
    single = build(conv_net(tmp_path / "single.onnx"), precision="auto")
    assert read_engine_manifest(single.engine).precision == "fp32"


# TensorRT-RTX 1.7.1 ends the whole process on this one.
CRASH = """<ir_version: 10, opset_import: ["" : 23]>
g (float[N,T,16] x, bool[N,T,T] m) => (float[N,T,16] y)
<int64[4] split = {0, -1, 4, 4}, int64[3] joined = {0, -1, 16}, int64[1] one = {1}, float low = {-inf},
 float zero = {0}> {
  a = Reshape(x, split)
  b = Transpose<perm = [0, 2, 1, 3]>(a)
  shape = Shape(m)
  none = Expand(zero, shape)
  off = Not(m)
  filled = Where(off, low, none)
  mask = Unsqueeze(filled, one)
  c = Attention(b, b, b, mask)
  d = Transpose<perm = [0, 2, 1, 3]>(c)
  y = Reshape(d, joined)
}"""


@pytest.mark.skipif(onnx.defs.onnx_opset_version() < 23, reason="this onnx has no Attention")
def test_a_crash_of_the_builder_is_an_error_and_not_the_end(tmp_path):
    model = onnx.parser.parse_model(CRASH)
    model.metadata_props.add(key="trtconv.space", value="N=1:2:5 T=5:16:40")
    onnx.save(model, str(tmp_path / "m.onnx"))
    request = BuildRequest(
        tmp_path / "m.onnx", tmp_path / "m.engine", dynamic=ShapeSpace(), backend="tensorrt-rtx", isolated=True
    )
    with pytest.raises(TrtconvError, match=r"ended with signal \d+"):
        build_engine(request)
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"]
