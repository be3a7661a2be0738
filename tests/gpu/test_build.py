"""Builds on the GPU: options, caches, and every way in which one goes wrong."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.backends.onnx_models import conv_net, plugin_net, refused_net
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.core.artifacts import manifest_path
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError
from trtconv.core.files.artifact_set import write_sealed
from trtconv.core.files.digest import sha256_file

X = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)


def test_manifest_says_where_it_was_built(tmp_path, engine_file):
    manifest = read_engine_manifest(engine_file(conv_net(tmp_path / "conv.onnx")))
    assert manifest.environment["gpu"]
    assert manifest.environment["compute_capability"].count(".") == 1
    assert manifest.layers > 0


def test_the_second_build_takes_the_timing_cache(tmp_path, engine_file):
    model = conv_net(tmp_path / "conv.onnx", depth=6, channels=64)
    cache = tmp_path / "timing.cache"
    first = engine_file(model, timing_cache=cache)
    one = read_engine_manifest(first)
    size = cache.stat().st_size
    second = engine_file(model, timing_cache=cache, suffix="2")
    two = read_engine_manifest(second)
    assert size > 0
    assert one.timing_cache["bytes_before"] == 0
    assert two.timing_cache["bytes_before"] == one.timing_cache["bytes"]
    assert two.seconds < one.seconds


def test_fp16_is_fp16(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "half.onnx", dtype=np.float16, channels=32, depth=2)
    engine = engine_file(model, precision="fp16")
    assert read_engine_manifest(engine).types["float16"] > 0
    want = OnnxRuntimeRunner(model)({"x": X.astype(np.float16)})["y"].astype(np.float32)
    actual = run(engine)(x=X.astype(np.float16))["y"].astype(np.float32)
    np.testing.assert_allclose(actual, want, rtol=2e-2, atol=2e-2)


def test_an_fp32_graph_is_no_fp16(tmp_path, engine_file):
    with pytest.raises(InvalidRequestError, match="is an fp32 graph"):
        engine_file(conv_net(tmp_path / "conv.onnx"), precision="fp16")


def test_external_weights(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "outside.onnx", external=True)
    want = OnnxRuntimeRunner(model)({"x": X})["y"]
    np.testing.assert_allclose(run(engine_file(model))(x=X)["y"], want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "options",
    [
        {"hardware_compatibility": "ampere_plus"},
        {"refit": "true"},
        {"max_aux_streams": 2},
        {"tf32": "true"},
        {"tactic_sources": "EDGE_MASK_CONVOLUTIONS,JIT_CONVOLUTIONS"},
        {"sparse_weights": True},
    ],
    ids=lambda o: next(iter(o)),
)
def test_options(tmp_path, engine_file, run, options):
    model = conv_net(tmp_path / "conv.onnx", depth=2)
    engine = engine_file(model, options=tuple(options.items()), opt_level=2, workspace=1 << 30)
    want = OnnxRuntimeRunner(model)({"x": X})["y"]
    np.testing.assert_allclose(run(engine)(x=X)["y"], want, rtol=2e-3, atol=2e-3)


def test_debug_outputs(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", depth=3)
    outputs = run(engine_file(model, options=(("debug_outputs", "r0,r1"),)))(x=X)
    assert set(outputs) == {"r0", "r1", "y"}


def test_refused_nodes_are_named_with_their_lines(tmp_path, engine_file):
    with pytest.raises(UnsupportedError) as caught:
        engine_file(refused_net(tmp_path / "refused.onnx"))
    assert "det0" in "".join(caught.value.details)
    assert not (tmp_path / "refused.engine").exists()


def test_a_plugin_that_is_not_loaded(tmp_path, engine_file):
    with pytest.raises(TrtconvError, match="needs the plugins TrtconvL2Norm"):
        engine_file(plugin_net(tmp_path / "plugin.onnx"))


def test_a_plugin_library_that_does_not_load(tmp_path, engine_file):
    model = conv_net(tmp_path / "conv.onnx")
    broken = tmp_path / "libbroken.so"
    broken.write_text("no library")
    with pytest.raises(TrtconvError, match="does not load"):
        engine_file(model, plugins=(broken,))
    source = tmp_path / "empty.c"
    source.write_text("int nothing(void) { return 0; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(tmp_path / "libempty.so"), str(source)], check=True)
    with pytest.raises(TrtconvError, match="is not a plugin library"):
        engine_file(model, plugins=(tmp_path / "libempty.so",))


def rebind(engine, **changes):
    """Write a manifest that fits the engine's present bytes, with changes."""
    path = manifest_path(engine)
    data = json.loads(path.read_text())
    data |= {"engine_sha256": sha256_file(engine), "engine_bytes": engine.stat().st_size}
    for key, text in changes.items():
        data["environment"][key] = text
    write_sealed(path, data)


def test_engines_that_do_not_belong_here(tmp_path, engine_file):
    model = conv_net(tmp_path / "conv.onnx")
    engine = engine_file(model)
    good = engine.read_bytes()

    engine.write_bytes(good[: len(good) // 2])
    with pytest.raises(InvalidRequestError, match="bytes of"):
        backend_of(engine).load(engine)
    rebind(engine)
    with pytest.raises(TrtconvError, match="refuses"):
        backend_of(engine).load(engine)

    engine.write_bytes(good[:24] + bytes([good[24], good[25] + 1, 0, 0]) + good[28:])
    rebind(engine)
    with pytest.raises(UnsupportedError, match="was made by tensorrt"):
        backend_of(engine).load(engine)

    engine.write_bytes(good)
    rebind(engine, compute_capability="7.0", gpu="Another GPU")
    with pytest.raises(UnsupportedError, match="was built on Another GPU"):
        backend_of(engine).load(engine)

    engine.write_bytes(b"no engine at all" * 8)
    with pytest.raises(InvalidRequestError, match="is not a TensorRT engine"):
        backend_of(engine).load(engine)


def test_ctrl_c_stops_a_build_and_leaves_nothing(tmp_path):
    model = conv_net(tmp_path / "big.onnx", depth=40, channels=128)
    engine = tmp_path / "big.engine"
    command = [sys.executable, "-m", "trtconv", "build", str(model), "-o", str(engine), "--dynamic",
               "--backend", "tensorrt", "--opt-level", "5"]  # fmt: skip
    child = subprocess.Popen(command, start_new_session=True, stderr=subprocess.PIPE, text=True)
    time.sleep(6)
    assert child.poll() is None, "the build was over before it could be interrupted"
    start = time.monotonic()
    os.killpg(child.pid, signal.SIGINT)
    _, words = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "interrupted" in words
    assert time.monotonic() - start < 10
    assert [p.name for p in tmp_path.iterdir()] == ["big.onnx"]
