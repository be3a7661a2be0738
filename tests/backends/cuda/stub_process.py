"""Run in a child process over the stand-in for the driver: what is freed, by which thread, and how the process ends."""

from __future__ import annotations

import gc
import json
import os
import sys
import threading
from importlib import import_module

import numpy as np

from tests.backends import fake_tensorrt
from trtconv.backends.cuda.context import current_context
from trtconv.backends.cuda.memory import open_cuda_memory
from trtconv.backends.runtime.session import EngineSession

if hasattr(sys, "setdlopenflags"):
    # The stand-in has only those of pycuda's functions that are used.
    sys.setdlopenflags(os.RTLD_LAZY)


def in_a_thread(work):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()


def open_session(memory):
    return EngineSession(fake_tensorrt, (object(), fake_tensorrt.Engine()), memory, "fake", {})


def call(session, rows):
    x = np.random.default_rng(rows).standard_normal((rows, 2)).astype(np.float32)
    outputs = session(x=x, ids=np.arange(rows, dtype=np.int32))
    assert (outputs["y"] == 2 * x).all()


def threads(memory):
    """Buffers, streams and events made in one thread, let go in another, or by a thread's end."""
    driver, held = memory.driver, []
    in_a_thread(lambda: held.extend([memory.allocate(100), memory.create_stream()]))
    held.append(memory.interval(held[1]))
    held[2].begin()
    held[2].end()
    assert held[2].seconds() == 0.002
    before = driver.stub_live()
    in_a_thread(held.clear)
    after = driver.stub_live()
    in_a_thread(lambda: memory.allocate(100))
    return {"before": before, "after": after, "end": driver.stub_live()}


def calls(memory):
    """A session from four threads, then closed."""
    session, driver = open_session(memory), memory.driver
    workers = [
        threading.Thread(target=lambda n=n: [call(session, 1 + (n * 7 + i) % 60) for i in range(100)]) for n in range(4)
    ]
    [w.start() for w in workers]
    [w.join() for w in workers]
    session.close()
    session = None
    gc.collect()
    return {"live": driver.stub_live()}


def growth(memory):
    """Python's own blocks over 1,000 calls from four threads; outputs on the device change threads."""
    session, exchanged = open_session(memory), [None] * 4

    def blocks_after(count):
        def work(number):
            for i in range(count // 4):
                call(session, 1 + (number * 7 + i) % 60)
                if i % 25 == 0:
                    lane = session.prepare({"x": np.ones((2, 2), np.float32), "ids": np.zeros(2, np.int32)})
                    exchanged[(number + 1) % 4] = lane.outputs()["y"]
                    lane.close()

        for number in range(4):
            # One after another, so that the number of blocks does not depend on the order of the threads.
            in_a_thread(lambda number=number: work(number))
        exchanged[:] = [None] * 4
        # The fake engine keeps what it made; the real one does not.
        session._engine.contexts.clear()
        gc.collect()
        return sys.getallocatedblocks()

    blocks_after(200)
    before = blocks_after(200)
    return {"blocks": blocks_after(1000) - before, "live": memory.driver.stub_live()}


def unclosed(memory):
    """A session and outputs that live until the interpreter ends."""
    session = open_session(memory)
    lane = session.prepare({"x": np.ones((2, 2), np.float32), "ids": np.zeros(2, np.int32)})
    sys.modules["held"] = (session, lane, lane.outputs())
    in_a_thread(lambda: call(session, 3))
    return {}


def own_context(memory):
    """A caller that has a context of its own current finds it so after a call."""
    cuda = import_module("pycuda.driver")
    cuda.init()
    cuda.Device(0).make_context()
    foreign = cuda.mem_alloc(16)
    before = current_context(memory.driver)
    call(open_session(memory), 3)
    same = current_context(memory.driver) == before
    owns = memory.owns(int(foreign))
    del foreign
    cuda.Context.pop()
    return {"same": same, "owns": owns, "depth": memory.driver.stub_depth()}


def gpuarrays(memory):
    """GPUArrays of the primary context go in, and outputs are GPUArrays over the engine's own memory."""
    import_module("pycuda.autoprimaryctx")
    gpuarray = import_module("pycuda.gpuarray")
    session = open_session(memory)
    x, ids = np.arange(6, dtype=np.float32).reshape(3, 2), np.arange(3, dtype=np.int32)
    equal = True
    for _ in range(3):
        options = {"x": gpuarray.to_gpu(x), "ids": gpuarray.to_gpu(ids)}
        outputs = session(options)
        arrays = {name: output.gpuarray() for name, output in outputs.items()}
        equal &= all(int(arrays[n].gpudata) == outputs[n].pointer for n in outputs)
        equal &= bool((arrays["y"].get() == 2 * x).all() and (arrays["same"].get() == ids).all())
        equal &= bool((arrays["n"].get() == x[x > 0]).all())
        # One thread's arrays, let go by another one's next run, which has read them.
        in_a_thread(lambda: call(session, 4))
    del options, outputs, arrays
    session.close()
    session = None
    gc.collect()
    return {"equal": equal, "live": memory.driver.stub_live()}


def main() -> None:
    memory = open_cuda_memory()
    facts = globals()[sys.argv[1]](memory)
    print(json.dumps({"name": memory.name, "wrong": memory.driver.stub_wrong(), **facts}))


if __name__ == "__main__":
    main()
