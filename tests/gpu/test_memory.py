"""Device memory by pycuda and by the driver: threads, the caller's own contexts, GPUArrays, and nothing that grows."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tests.backends.onnx_models import conv_net
from trtconv.backends.cuda.context import current_context, open_driver
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.core.errors import InvalidRequestError, UnsupportedError

pytestmark = pytest.mark.gpu
ROOT = Path(__file__).parents[2]
THREADS, CALLS, WARM_UP = 4, 10_000, 400
# The driver gives memory in pieces of 2 MiB, and everything on this GPU counts.
DEVICE_SLACK, HOST_SLACK = 4 << 20, 8 << 20
needs_pycuda = pytest.mark.skipif(find_spec("pycuda") is None, reason="pycuda is not installed")


def sample(seed: int, rows: int = 2) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((rows, 3, 32, 32)).astype(np.float32)


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def from_threads(work) -> None:
    """Call `work(number)` in THREADS threads; the first failure is raised here."""
    failures = []

    def body(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=body, args=(n,)) for n in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_memory_does_not_grow_over_ten_thousand_calls(tmp_path, engine_file, run, cuda_library):
    session = run(engine_file(conv_net(tmp_path / "conv.onnx", depth=2)))
    exchanged: list[object] = [None] * THREADS

    def calls(count: int):
        def work(number: int) -> None:
            x = sample(number, 4)
            # Shapes that change move buffers; outputs on the GPU are let go by another thread than made them.
            for call in range(count // THREADS):
                rows = 1 + (number + call) % 4
                y = session(x=x[:rows])["y"]
                assert y.shape[0] == rows
                if call % 50 == 0:
                    lane = session.prepare({"x": x[:rows]})
                    exchanged[(number + 1) % THREADS] = lane.outputs()["y"]
                    lane.close()

        return work

    def measure() -> tuple[int, int]:
        exchanged[:] = [None] * THREADS
        gc.collect()
        return session._memory.free_bytes(), resident_bytes()

    from_threads(calls(WARM_UP))
    from_threads(calls(WARM_UP))
    free, resident = measure()
    from_threads(calls(CALLS))
    free_after, resident_after = measure()
    print(f"{cuda_library}: device {free - free_after:+d} bytes, host {resident_after - resident:+d} bytes")
    assert free - free_after <= DEVICE_SLACK
    assert resident_after - resident <= HOST_SLACK


def test_outputs_on_the_gpu_outlive_thread_and_session(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx")
    engine = engine_file(model)
    session, x, held = run(engine), sample(1), []

    def work() -> None:
        held.append(session.prepare({"x": x}).outputs()["y"])

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    gc.collect()
    np.testing.assert_allclose(held[0].numpy(), OnnxRuntimeRunner(model)({"x": x})["y"], rtol=1e-4, atol=1e-4)
    memory = session._memory
    before = memory.free_bytes()
    big = memory.allocate(64 << 20)
    assert before - memory.free_bytes() >= 64 << 20
    box = [big]
    del big
    thread = threading.Thread(target=box.clear)
    thread.start()
    thread.join()
    assert before - memory.free_bytes() <= DEVICE_SLACK, "freed by a thread that did not make it"


def test_the_callers_thread_is_as_it_was(tmp_path, engine_file, run):
    session, driver = run(engine_file(conv_net(tmp_path / "conv.onnx"))), open_driver()

    def work() -> None:
        for _ in range(3):
            session(x=sample(2))
            visits.append(current_context(driver))

    visits: list[int] = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert visits == [0, 0, 0]


@cache
def users_context():
    """The primary context by an object of the user's own, for the life of the process as `pycuda.autoprimaryctx`'s."""
    import pycuda.driver as cuda

    cuda.init()
    return cuda.Device(0).retain_primary_context()


@pytest.fixture
def primary():
    users_context().push()
    yield
    users_context().pop()


@needs_pycuda
def test_gpuarrays_go_in_and_come_out(tmp_path, engine_file, run, primary):
    from pycuda import gpuarray

    model = conv_net(tmp_path / "conv.onnx", depth=2)
    session, x = run(engine_file(model)), sample(3)
    want = OnnxRuntimeRunner(model)({"x": x})["y"]
    for _ in range(5):
        inputs = gpuarray.to_gpu(x)
        output = session(x=inputs)["y"]
        del inputs
        array = output.gpuarray()
        assert isinstance(array, gpuarray.GPUArray)
        assert (array.shape, array.dtype) == (want.shape, want.dtype)
        np.testing.assert_allclose(array.get(), want, rtol=1e-4, atol=1e-4)
    # An output is an input again.
    assert session(x=gpuarray.to_gpu(x))["y"].gpuarray().gpudata == output.pointer


@needs_pycuda
def test_a_gpuarray_of_another_context_is_refused(tmp_path, engine_file, run):
    import pycuda.driver as cuda
    from pycuda import gpuarray

    session = run(engine_file(conv_net(tmp_path / "conv.onnx")))
    cuda.init()
    own = cuda.Device(0).make_context()
    try:
        inputs = gpuarray.to_gpu(sample(4))
        with pytest.raises(InvalidRequestError, match="another CUDA context"):
            session(x=inputs)
        np.testing.assert_array_equal(inputs.get(), sample(4))
        del inputs
    finally:
        own.pop()
        own.detach()
    assert session(x=sample(4))["y"].shape[0] == 2


def test_a_cuda_graph_from_every_thread(tmp_path, engine_file, run):
    model = conv_net(tmp_path / "conv.onnx", depth=2)
    session = run(engine_file(model))
    session.cuda_graph = True
    x = sample(5)
    want = OnnxRuntimeRunner(model)({"x": x})["y"]

    def work(number: int) -> None:
        for _ in range(20):
            gc.collect()
            np.testing.assert_allclose(session(x=x)["y"], want, rtol=1e-4, atol=1e-4)
        lane = session.prepare({"x": x}, cuda_graph=True)
        interval = lane.interval()
        interval.begin()
        lane()
        interval.end()
        assert 0 < interval.seconds() < 1
        lane.close()

    try:
        from_threads(work)
    except UnsupportedError as error:
        pytest.fail(error.message)


ENDINGS = {
    "open": "keep = session",
    "closed": "session.close()",
    "thread": "t = threading.Thread(target=lambda: session(x=x)); t.start(); t.join(); keep = session",
    "error": "raise SystemExit(7)",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_how_the_process_ends(tmp_path, engine_file, cuda_library, ending):
    """pycuda aborts a process that ends with a context on a thread's stack."""
    engine = engine_file(conv_net(tmp_path / "conv.onnx"))
    lines = [
        "import sys, threading", "import numpy as np", "from trtconv.backends.select import backend_of",
        "from pathlib import Path", "session = backend_of(Path(sys.argv[1])).load(Path(sys.argv[1]))",
        "x = np.ones((2, 3, 32, 32), np.float32)", "session(x=x)",
        "output = session.prepare({'x': x}).outputs()['y']", "print(session.version)", ENDINGS[ending],
    ]  # fmt: skip
    ended = subprocess.run(
        [sys.executable, "-c", "\n".join(lines), str(engine)], capture_output=True, text=True, cwd=ROOT, timeout=120
    )
    assert ended.returncode == (7 if ending == "error" else 0), ended.stderr
    assert ended.stdout.strip().endswith({"pycuda": "pycuda", "driver": "CUDA driver"}[cuda_library])
    assert "PyCUDA" not in ended.stderr
    assert "Traceback" not in ended.stderr
