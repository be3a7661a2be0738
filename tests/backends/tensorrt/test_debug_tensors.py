"""Inner tensors while an engine runs: through the listener on TensorRT 10 and later, as outputs before."""

import numpy as np
import pytest

from tests.backends import fake_tensorrt
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.backends.runtime.session import EngineSession
from trtconv.backends.tensorrt.builder.configuration import check_settings
from trtconv.backends.tensorrt.debug_tensors import mark_debug
from trtconv.core.errors import TrtconvError, UnsupportedError

INNER = np.arange(4, dtype=np.float32).reshape(2, 2)


class Listening(fake_tensorrt.Context):
    """A context that hands an inner tensor to its listener while it runs, as TensorRT 10 does."""

    on = frozenset()

    def set_debug_listener(self, listener):
        self.listener, self.on = listener, set()
        return True

    def set_tensor_debug_state(self, name, state):
        self.on.add(name)
        return True

    def execute_async_v3(self, stream):
        for name in self.on:
            kind = fake_tensorrt.DataType.INT8 if self.engine.broken else fake_tensorrt.DataType.FLOAT
            shape = None if self.engine.broken else INNER.shape
            location = fake_tensorrt.TensorLocation.DEVICE
            if not self.listener.process_debug_tensor(INNER.ctypes.data, location, kind, shape, name, stream):
                return False
        return super().execute_async_v3(stream)


class Engine(fake_tensorrt.Engine):
    broken = False

    def is_debug_tensor(self, name):
        return name == "inner"

    def create_execution_context(self):
        self.contexts.append(Listening(self))
        return self.contexts[-1]


class IDebugListener:
    pass


def opened(engine, monkeypatch):
    monkeypatch.setattr(fake_tensorrt, "IDebugListener", IDebugListener, raising=False)
    return EngineSession(fake_tensorrt, (object(), engine), fake_tensorrt.HostMemory(), "fake", {})


GIVEN = {"x": np.ones((2, 2), np.float32), "ids": np.arange(2, dtype=np.int32)}


def test_what_was_marked_comes_with_the_outputs(monkeypatch):
    engine = Engine()
    session = opened(engine, monkeypatch)
    result = session.watched(GIVEN, ["inner", "folded"])
    assert set(result) == {"x", "y", "n", "same", "inner"} - {"x"}
    np.testing.assert_array_equal(result["inner"], INNER)
    assert engine.contexts[-1].on == {"inner"}, "a tensor that the engine does not have is not switched on"
    np.testing.assert_array_equal(result["y"], 2 * GIVEN["x"])
    assert "inner" not in session(GIVEN)


def test_a_listener_that_fails_is_an_error_with_its_cause(monkeypatch):
    engine = Engine()
    engine.broken = True
    with pytest.raises(TrtconvError, match="cannot be read") as caught:
        opened(engine, monkeypatch).watched(GIVEN, ["inner"])
    assert isinstance(caught.value.__cause__, TypeError)


def test_before_tensorrt_10_inner_tensors_are_outputs():
    engine = fake_tensorrt.Engine()
    session = EngineSession(fake_tensorrt, (object(), engine), fake_tensorrt.HostMemory(), "fake", {})
    assert set(session.watched(GIVEN, ["y"])) == {"y", "n", "same"}


def test_a_tensorrt_without_them_refuses_the_option(tmp_path):
    old = Capabilities("tensorrt", "8.6.0", 8, True, True, False, debug_tensors=False)
    with pytest.raises(UnsupportedError, match="debug_tensors"):
        check_settings(old, EngineSettings(tmp_path / "m.onnx", ({},), options={"debug_tensors": "a,b"}))


def test_only_named_float_tensors_of_layers_are_marked():
    class Tensor:
        def __init__(self, name, shape=False):
            self.name, self.is_shape_tensor = name, shape

    class Layer:
        def __init__(self, *tensors):
            self.tensors, self.num_outputs = tensors, len(tensors)

        def get_output(self, index):
            return self.tensors[index]

    class Network:
        layers = (Layer(Tensor("a"), None), Layer(Tensor("size", True)), Layer(Tensor("b"), Tensor("y")))
        num_layers, num_outputs = 3, 1

        def get_layer(self, index):
            return self.layers[index]

        def get_output(self, index):
            return self.layers[2].tensors[1]

        def mark_debug(self, tensor):
            return tensor.name != "b"

    assert mark_debug(Network(), {"a", "b", "size", "y", "gone"}) == ("a",)


def test_a_real_builder_takes_them(tmp_path):
    pytest.importorskip("tensorrt_rtx")
    from tests.backends.onnx_models import conv_net
    from trtconv.build import build_engine
    from trtconv.core.requests import BuildRequest

    model = conv_net(tmp_path / "conv.onnx", depth=3)
    plans = [
        build_engine(
            BuildRequest(model, tmp_path / f"{name}.engine", backend="tensorrt-rtx", options=(("debug_tensors", name),))
        ).engine.read_bytes()
        for name in ("r0", "none")
    ]
    # The name of a tensor that is fused away is in the plan only when it can be watched.
    assert plans[0].count(b"r0") > plans[1].count(b"r0")
