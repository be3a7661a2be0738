"""New weights in a built engine: what it then computes, and what it does not take."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.backends.onnx_models import conv_net
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.backends.tensorrt.backend import TensorRTBackend
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.build.refit import refit_engine
from trtconv.core.errors import UnsupportedError
from trtconv.core.files.digest import sha256_file

X = np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)
REFIT = (("refit", "true"),)


@pytest.fixture(scope="module", autouse=True)
def one_start():
    """8.6 takes seconds to start: all builds of this file are in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TensorRTBackend, "build", TensorRTBackend.build_here)
        yield


def with_other_weights(model, output, factor=-1.5):
    proto = onnx.load(str(model))
    for tensor in proto.graph.initializer:
        array = numpy_helper.to_array(tensor)
        tensor.CopyFrom(numpy_helper.from_array((array * factor).astype(array.dtype), tensor.name))
    onnx.save(proto, str(output))
    return output


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_an_engine_computes_with_its_new_weights(tmp_path, engine_file, run, dtype):
    model = conv_net(tmp_path / "net.onnx", depth=3, channels=16, dtype=dtype)
    new = with_other_weights(model, tmp_path / "new.onnx")
    precision = "fp16" if dtype == np.float16 else "fp32"
    engine = engine_file(model, options=REFIT, precision=precision)
    result = refit_engine(engine, model, new, tmp_path / "new.engine")
    assert result.weights == ("w0", "w1", "w2")
    x = X.astype(dtype)
    expected, before = (OnnxRuntimeRunner(m)({"x": x})["y"].astype(np.float32) for m in (new, model))
    limits = {"rtol": 2e-2, "atol": 2e-2} if dtype == np.float16 else {"rtol": 1e-4, "atol": 1e-4}
    outputs = run(result.engine)(x=x)["y"].astype(np.float32)
    np.testing.assert_allclose(outputs, expected, **limits)
    assert np.abs(expected - before).max() > 0.1
    np.testing.assert_allclose(run(engine)(x=x)["y"].astype(np.float32), before, **limits)


def test_the_manifest_names_the_new_graph(tmp_path, engine_file):
    model = conv_net(tmp_path / "net.onnx")
    new = with_other_weights(model, tmp_path / "new.onnx")
    engine = engine_file(model, options=REFIT)
    manifest = read_engine_manifest(refit_engine(engine, model, new, tmp_path / "new.engine").engine)
    assert manifest.model_files == {"new.onnx": sha256_file(new)}
    assert manifest.profiles == read_engine_manifest(engine).profiles
    again = refit_engine(tmp_path / "new.engine", new, model, tmp_path / "again.engine")
    assert again.weights == ("w0",), "an engine that was refitted can be refitted"


def test_an_engine_that_was_not_built_for_it(tmp_path, engine_file):
    model = conv_net(tmp_path / "net.onnx")
    engine = engine_file(model)
    with pytest.raises(UnsupportedError, match="was not built to take new weights"):
        refit_engine(engine, model, model, tmp_path / "new.engine")
    with pytest.raises(UnsupportedError, match="was not built to take new weights"):
        backend_of(engine).refit(engine, {})
    assert not (tmp_path / "new.engine").exists()


def test_a_weight_that_the_engine_has_no_place_for_is_named(tmp_path, engine_file):
    engine = engine_file(conv_net(tmp_path / "net.onnx"), options=REFIT)
    with pytest.raises(UnsupportedError, match="no place for 1 of the 1 new weights: 'absent'"):
        backend_of(engine).refit(engine, {"absent": np.zeros(3, np.float32)})
