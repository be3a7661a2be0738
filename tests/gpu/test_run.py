"""Engines on the GPU give what ONNX Runtime gives, for every kind of input and output."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from tests.backends.onnx_models import conv_net, expand_net, nonzero_net, token_net
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError, TrtconvError
from trtconv.core.model.file import load_model, signature
from trtconv.core.shape_space.space import parse_space
from trtconv.proof.allowance import FP32_ENGINE, allow
from trtconv.proof.comparison import compare_output, describe_failure
from trtconv.proof.points import sample_inputs, sample_points


def close(want, actual):
    assert want.dtype == actual.dtype
    comparison = compare_output("output", "point", want, actual, allow(want, arithmetic=FP32_ENGINE))
    assert comparison.passed, describe_failure(comparison)


def compare(model, session, inputs):
    want = OnnxRuntimeRunner(model)(inputs)
    actual = session(inputs)
    assert set(want) == set(actual)
    for name in want:
        close(want[name], actual[name])


def test_equal_at_every_sample_point(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", depth=3)
    session = run(engine_file(model))
    tensors = signature(load_model(model))
    for point in sample_points(tensors.space, tensors.inputs):
        if not point.advisory:
            compare(model, session, sample_inputs(tensors.inputs, point))


def test_static_engine(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx")
    session = run(engine_file(model, dynamic=None))
    compare(model, session, {"x": np.random.default_rng(0).standard_normal((2, 3, 32, 32)).astype(np.float32)})
    with pytest.raises(InvalidRequestError, match="dim 0 of 'x' is 1, it takes 2"):
        session(x=np.zeros((1, 3, 32, 32), np.float32))


def test_two_profiles_and_the_choice_among_them(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx")
    session = run(
        engine_file(model, profiles=(parse_space(["N=1 H=16 W=16"]), parse_space(["N=1:2:4 H=32:32:64%8 W=64"])))
    )
    assert len(session.profiles) == 2
    for shape in ((1, 3, 16, 16), (3, 3, 40, 64), (1, 3, 16, 16), (4, 3, 64, 64)):
        compare(model, session, {"x": np.random.default_rng(1).standard_normal(shape).astype(np.float32)})
    with pytest.raises(InvalidRequestError) as caught:
        session(x=np.zeros((1, 3, 24, 24), np.float32))
    assert len(caught.value.details) == 2


def test_inputs_that_are_not_contiguous_or_of_another_precision(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx")
    session = run(engine_file(model))
    x = np.random.default_rng(2).standard_normal((2, 32, 40, 3)).transpose(0, 3, 1, 2)
    want = OnnxRuntimeRunner(model)({"x": np.ascontiguousarray(x, np.float32)})["y"]
    close(want, session(x=x.astype(np.float32))["y"])
    close(want, session(x=x)["y"])
    with pytest.raises(InvalidRequestError, match="takes float32"):
        session(x=np.zeros((1, 3, 32, 32), np.int32))
    with pytest.raises(InvalidRequestError, match="'x' is missing"):
        session(X=x)


def test_empty_batch(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", low=0)
    session = run(engine_file(model))
    assert session(x=np.zeros((0, 3, 32, 32), np.float32))["y"].shape == (0, 8, 32, 32)
    compare(model, session, {"x": np.ones((2, 3, 32, 32), np.float32)})


def test_int64_in_and_out(tmp_path, engine_file, run):
    model = token_net(tmp_path / "token.onnx")
    session = run(engine_file(model))
    for shape in ((1, 1), (4, 16), (3, 7)):
        compare(model, session, {"ids": np.random.default_rng(3).integers(0, 100, shape)})
    if session.inputs[0].dtype.name == "int32":
        with pytest.raises(InvalidRequestError, match="outside int32"):
            session(ids=np.full((1, 1), 2**40))


def test_an_output_whose_size_depends_on_data(tmp_path, engine_file, run):
    model = nonzero_net(tmp_path / "nonzero.onnx")
    session = run(engine_file(model))
    rng = np.random.default_rng(4)
    for rows in (1, 8, 3):
        compare(model, session, {"x": rng.standard_normal((rows, 5)).astype(np.float32)})
    compare(model, session, {"x": np.full((4, 5), -1, np.float32)})
    compare(model, session, {"x": np.full((8, 5), 1, np.float32)})


def test_a_shape_tensor_in_host_memory(tmp_path, engine_file, run):
    model = expand_net(tmp_path / "expand.onnx")
    session = run(engine_file(model))
    assert [t.host for t in session.inputs if t.name == "shape"] == [True]
    for shape in ((1, 1), (16, 16), (3, 7)):
        compare(model, session, {"x": np.full((1, 1), 2, np.float32), "shape": np.array(shape, np.int64)})


def test_cuda_graph_replays_every_shape(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", depth=2)
    session = run(engine_file(model))
    session.cuda_graph = True
    rng = np.random.default_rng(5)
    for _ in range(4):
        for shape in ((1, 3, 16, 16), (4, 3, 64, 64), (2, 3, 32, 40)):
            compare(model, session, {"x": rng.standard_normal(shape).astype(np.float32)})


def test_a_context_per_thread(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", depth=2)
    session = run(engine_file(model))
    failures = []

    def work(seed: int) -> None:
        try:
            rng = np.random.default_rng(seed)
            for _ in range(20):
                size = 8 * int(rng.integers(2, 9))
                compare(model, session, {"x": rng.standard_normal((1 + seed % 4, 3, size, 16)).astype(np.float32)})
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_tensors_stay_on_the_gpu(tmp_path, engine_file, run):
    first = conv_net(tmp_path / "first.onnx", channels=3)
    second = conv_net(tmp_path / "second.onnx", depth=2)
    one, two = run(engine_file(first)), run(engine_file(second))
    x = np.random.default_rng(6).standard_normal((2, 3, 32, 48)).astype(np.float32)
    want = OnnxRuntimeRunner(second)({"x": OnnxRuntimeRunner(first)({"x": x})["y"]})["y"]
    middle = one.prepare({"x": x}).outputs()["y"]
    for graph in (False, True, True, True):
        two.cuda_graph = graph
        result = two(x=middle)["y"]
        assert not isinstance(result, np.ndarray)
        close(want, result.numpy())


def test_the_gpu_out_of_memory_while_running(tmp_path, engine_file, run):
    model = expand_net(tmp_path / "expand.onnx")
    session = run(engine_file(model, inputs=(_spec("shape:int64[2]=1:32768"),)))
    session({"x": np.ones((1, 1), np.float32), "shape": np.array([2, 2])})
    memory = session._memory
    free = memory.free_bytes()
    block = memory.allocate(free - (1 << 30))
    with pytest.raises(TrtconvError, match="out of memory"):
        session({"x": np.ones((1, 1), np.float32), "shape": np.array([32768, 32768])})
    del block
    assert session({"x": np.ones((1, 1), np.float32), "shape": np.array([3, 2])})["y"].shape == (3, 2)


def _spec(text):
    from trtconv.core.tensors import parse_tensor

    return parse_tensor(text)


def test_layers_have_times(tmp_path, engine_file, run):
    session = run(engine_file(conv_net(tmp_path / "conv.onnx", depth=3)))
    layers = session.layers(runs=5)
    assert layers
    assert sum(layer.seconds for layer in layers) > 0
    assert any("conv1" in layer.name or "conv1" in layer.onnx_nodes for layer in layers)
    assert any(t.dtype == "float32" for layer in layers for t in layer.outputs)
