"""`PycudaMemory` over a fake pycuda that records every free, and an engine's session on top of it."""

import gc
import sys
import threading

import numpy as np
import pytest

from tests.backends import fake_tensorrt
from tests.backends.cuda.fake_pycuda import FakeDriver, FakePycuda, LogicError
from trtconv.backends.cuda import pycuda_memory
from trtconv.backends.cuda.memory import CudaMemory, ForeignStream, open_cuda_memory
from trtconv.backends.runtime.session import EngineSession
from trtconv.core.errors import TrtconvError


@pytest.fixture
def fake(monkeypatch):
    fake = FakePycuda()
    for name, module in fake.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setenv("TRTCONV_CUDA", "pycuda")
    monkeypatch.setattr(pycuda_memory, "open_driver", FakeDriver)
    pycuda_memory.primary_context.cache_clear()
    yield fake
    pycuda_memory.primary_context.cache_clear()
    gc.collect()
    assert fake.problems == []
    assert fake.pushes == fake.pops, "a context left on a thread's stack aborts the process at its end"


@pytest.fixture
def memory(fake) -> CudaMemory:
    return open_cuda_memory()


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def test_one_context_for_all_sessions(fake):
    held = [open_cuda_memory() for _ in range(3)]
    assert [m.name for m in held] == ["pycuda"] * 3
    assert fake.retained == 1


@pytest.mark.sampled(1)
@pytest.mark.parametrize("array", [np.arange(6, dtype=np.float16).reshape(2, 3), np.array(3.5), np.zeros((0, 4))])
def test_there_and_back(memory, array):
    stream, buffer, second = memory.create_stream(), memory.allocate(array.nbytes), memory.allocate(array.nbytes)
    memory.upload(buffer.pointer, array, stream)
    memory.copy(second.pointer, buffer.pointer, array.nbytes, stream)
    result = np.empty_like(array)
    memory.download(result, second.pointer, stream)
    memory.synchronize(stream)
    np.testing.assert_array_equal(result, array)


def test_bfloat16_has_no_buffer_interface(memory):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.arange(4).astype(ml_dtypes.bfloat16)
    stream, buffer, result = memory.create_stream(), memory.allocate(array.nbytes), np.empty_like(array)
    memory.upload(buffer.pointer, array, stream)
    memory.download(result, buffer.pointer, stream)
    assert (result == array).all()


def test_what_one_thread_made_another_frees(fake, memory):
    held = []
    in_a_thread(lambda: held.extend([memory.allocate(8), memory.create_stream()]))
    in_a_thread(lambda: held.append(memory.interval(held[1])))
    assert fake.live == 4
    in_a_thread(held.clear)
    assert fake.live == 0
    assert threading.get_ident() not in fake.freed_in


def test_what_is_let_go_in_a_block_makes_room_for_the_next(fake, memory):
    with memory.current():
        held = memory.allocate(fake.limit - 100)
        del held
        assert memory.allocate(fake.limit - 100).size == fake.limit - 100


def test_out_of_memory(fake, memory):
    with pytest.raises(TrtconvError, match=r"1.0 MiB were wanted and 1.0 MiB are free"):
        memory.allocate(fake.limit + 1)
    assert memory.free_bytes() == fake.limit


def test_errors_of_pycuda_are_errors_of_trtconv(fake, memory):
    stream = memory.create_stream()

    def fail():
        raise LogicError("cuStreamSynchronize failed: an illegal memory access was encountered")

    stream.native.synchronize = fail
    with pytest.raises(TrtconvError, match=r"work on the GPU failed: .*illegal memory access"):
        memory.synchronize(stream)
    fake.limit = 0
    with pytest.raises(TrtconvError, match="out of memory"):
        memory.allocate(1)


def test_intervals(memory):
    interval = memory.interval(memory.create_stream())
    interval.begin()
    interval.end()
    assert interval.seconds() == 0.002
    with pytest.raises(TrtconvError, match="a stream that trtconv created"):
        memory.interval(ForeignStream(7))


def test_pointers_of_another_context(memory):
    memory.driver.foreign.add(4096)
    assert not memory.owns(4096)
    assert memory.owns(8192)


@pytest.mark.slow
def test_a_session_from_four_threads_frees_all_it_took(fake, memory):
    session = EngineSession(fake_tensorrt, (object(), fake_tensorrt.Engine()), memory, "fake 8.6", {})
    failures = []

    def work(seed):
        try:
            for call in range(50):
                rows = 1 + (seed * 7 + call) % 60
                x = np.full((rows, 2), seed, np.float32)
                outputs = session(x=x, ids=np.arange(rows, dtype=np.int32))
                assert (outputs["y"] == 2 * x).all()
                assert not fake.stack, "the caller's thread is as it was"
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert failures == []
    session.close()
    session = None
    gc.collect()
    assert (fake.live, fake.used) == (0, 0)


def test_a_session_that_nobody_closed(fake, memory):
    session = EngineSession(fake_tensorrt, (object(), fake_tensorrt.Engine()), memory, "fake 8.6", {})
    lane = session.prepare({"x": np.ones((2, 2), np.float32), "ids": np.zeros(2, np.int32)})
    output = lane.outputs()["y"]
    assert output.numpy().tolist() == [[2, 2], [2, 2]]
    del session, lane
    gc.collect()
    assert fake.live, "an output that somebody holds is memory that stays"
    del output
    gc.collect()
    assert fake.live == 0
