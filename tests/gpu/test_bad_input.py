"""What goes wrong on a GPU beyond files: no memory to build or to open in, a reference that holds NaN."""

from __future__ import annotations

import numpy as np
import pytest

from tests.backends.onnx_models import conv_net
from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.cuda.memory import open_cuda_memory
from trtconv.backends.select import backend_of
from trtconv.check import check_model
from trtconv.core.errors import TrtconvError
from trtconv.core.model.file import load_model, signature
from trtconv.core.requests import CheckRequest
from trtconv.proof.points import sample_inputs, sample_points
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, write_reference

pytestmark = pytest.mark.gpu
# What the driver gives at least.
_STEP = 2 << 20


@pytest.fixture
def full(cuda_library):
    """Take all device memory but what is asked to stay free; given back when the test is over."""
    memory = open_cuda_memory(probe_cuda().gpus[0].index)
    held = []

    def fill(leave: int) -> None:
        # Not all that is free can be taken in one piece.
        size = 16 << 30
        while size >= _STEP:
            try:
                if memory.free_bytes() - leave < size:
                    raise TrtconvError("that much is not free")
                held.append(memory.allocate(size))
            except TrtconvError:
                size //= 2

    yield fill
    held.clear()


def test_no_memory_left_to_build_in(tmp_path, engine_file, full):
    model = conv_net(tmp_path / "conv.onnx", depth=3, channels=64)
    full(0)
    with pytest.raises(TrtconvError) as caught:
        engine_file(model)
    words = " ".join((caught.value.message, *caught.value.details, caught.value.hint or ""))
    assert "memory" in words.lower()
    assert not (tmp_path / "conv.engine").exists()


def test_no_memory_left_to_open_in(tmp_path, engine_file, full):
    # Weights of 5 MB and a result of 17 MB.
    engine = engine_file(conv_net(tmp_path / "conv.onnx", depth=3, channels=256, low=1))
    full(0)

    def use():
        backend_of(engine).load(engine)(x=np.zeros((4, 3, 64, 64), np.float32))

    with pytest.raises(TrtconvError, match="memory"):
        use()


def test_nan_in_the_reference_fails_the_check(tmp_path, engine_file):
    model = conv_net(tmp_path / "conv.onnx")
    engine = engine_file(model)
    tensors = signature(load_model(model))
    point = sample_points(tensors.space, tensors.inputs)[0]
    inputs = sample_inputs(tensors.inputs, point)
    shape = (inputs["x"].shape[0], 8, *inputs["x"].shape[2:])
    sample = ReferenceSample(point, inputs, {"y": np.full(shape, np.nan, np.float32)})
    reference = tmp_path / "nan.reference.safetensors"
    write_reference(reference, ReferenceInfo((point,), tensors.inputs, ("y",), tensors.space), [sample])
    report = check_model(CheckRequest(engine, reference=reference))
    assert not report.passed
    assert any("returns NaN" in f.message for f in report.findings)
