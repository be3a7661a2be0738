"""Builds in a process of their own, executed with TensorRT-RTX, which needs no GPU for it."""

import os
import signal
import threading
import time

import pytest

from tests.backends.onnx_models import conv_net, refused_net
from trtconv.backends.protocol import EngineSettings
from trtconv.backends.tensorrt.builder.isolated import BuildProcess, build_isolated
from trtconv.core.errors import TrtconvError, UnsupportedError
from trtconv.core.progress import SilentProgress

pytest.importorskip("tensorrt_rtx")
FAMILY, QUIET = "tensorrt-rtx", SilentProgress()


def settings(model):
    low, high = (1, 3, 16, 16), (4, 3, 64, 64)
    return EngineSettings(model, ({"x": (low, (2, 3, 32, 32), high)},), compute_capabilities=("8.9",))


def test_one_process_builds_several_engines_and_tells_their_errors(tmp_path):
    good = settings(conv_net(tmp_path / "good.onnx"))
    with BuildProcess(FAMILY) as process:
        first = process.build(good, QUIET)
        child = process._child.pid
        with pytest.raises(UnsupportedError) as caught:
            process.build(settings(refused_net(tmp_path / "bad.onnx")), QUIET)
        assert "det0" in "".join(caught.value.details)
        second = process.build(good, QUIET)
        assert process._child.pid == child
        folder = process.place
    assert isinstance(first.plan, bytes)
    assert len(first.plan) == len(second.plan)
    assert not folder.exists()
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


def test_a_child_that_dies_is_an_error_and_is_replaced(tmp_path):
    good = settings(conv_net(tmp_path / "good.onnx"))
    with BuildProcess(FAMILY) as process:
        process.build(good, QUIET)
        child = process._child
        killer = threading.Timer(0.01, lambda: os.kill(child.pid, signal.SIGKILL))
        os.kill(child.pid, signal.SIGSTOP)
        killer.start()
        with pytest.raises(TrtconvError, match="ended with signal 9"):
            process.build(good, QUIET)
        assert process.build(good, QUIET).plan


def test_ctrl_c_ends_the_child(tmp_path):
    class Interrupted(SilentProgress):
        def phase(self, text):
            raise KeyboardInterrupt

    good = settings(conv_net(tmp_path / "good.onnx"))
    with BuildProcess(FAMILY) as process:
        start = time.monotonic()
        with pytest.raises(KeyboardInterrupt):
            process.build(good, Interrupted())
        assert process._child is None
        assert time.monotonic() - start < 60


def test_a_single_build(tmp_path):
    assert build_isolated(FAMILY, settings(conv_net(tmp_path / "good.onnx")), QUIET).layers > 0
