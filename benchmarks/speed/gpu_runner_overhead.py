"""What the runner adds to a bare `execute_async_v3` loop, in microseconds a call: speed/gpu_runner_overhead.py JSON

A network so small that the CPU is the limit. Rows: the bare loop, the prepared run, its CUDA graph, both also inside a
block in which the context is current (elsewhere each call pushes and pops it), a call with tensors on the GPU (DLPack),
and a call with NumPy arrays (which copies in and out). Medians of 5 rounds. `TRTCONV_CUDA` chooses the CUDA library.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.record import write_result
from tests.backends.onnx_models import conv_net
from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.select import backend_of
from trtconv.build import build_engine
from trtconv.core.requests import BuildRequest

CALLS, ROUNDS = 2000, 5


def per_call(call, synchronize) -> float:
    for _ in range(200):
        call()
    synchronize()
    rounds = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        for _ in range(CALLS):
            call()
        synchronize()
        rounds.append((time.perf_counter() - start) / CALLS)
    return statistics.median(rounds) * 1e6


def graph_replay(driver, graph, stream):
    """The bare launch of a captured graph, without any of the runner's Python."""
    launch, handle, stream_handle = driver.cuGraphLaunch, graph._exec, graph._stream
    return lambda: launch(handle, stream_handle)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        model = conv_net(Path(folder) / "small.onnx", channels=4)
        engine = build_engine(BuildRequest(model, Path(folder) / "small.engine", backend="tensorrt")).engine
        session = backend_of(engine).load(engine)
        x = np.ones((2, 3, 32, 32), np.float32)
        prepared = session.prepare({"x": x})
        execution, synchronize = prepared.execution, prepared.synchronize
        context, stream, memory = execution.context, execution.stream, execution.memory
        handle = stream.handle
        captured = session.prepare({"x": x}, cuda_graph=True)
        # With the context current all the time, as `bench` measures.
        with memory.current():
            rows = {"bare execute_async_v3": per_call(lambda: context.execute_async_v3(handle), synchronize)}
            replay = graph_replay(memory.driver, captured.graph, handle)
            rows["bare cuGraphLaunch"] = per_call(replay, synchronize)
            rows["prepared run in a block"] = per_call(prepared, synchronize)
            rows["prepared run in a block, CUDA graph"] = per_call(captured, synchronize)
        rows["prepared run"] = per_call(prepared, synchronize)
        rows["prepared run, CUDA graph"] = per_call(captured, synchronize)
        # The engine's own output buffer of the same element type serves as a tensor that is on the GPU already.
        source = execution.memory.allocate(x.nbytes)
        execution.memory.upload(source.pointer, x, stream)
        from trtconv.backends.cuda.device_array import DeviceArray

        device_x = DeviceArray(source.pointer, x.shape, session.inputs[0].dtype, stream, source, execution.memory)
        rows["call with a GPU tensor"] = per_call(lambda: session(x=device_x), synchronize)
        rows["call with NumPy arrays"] = per_call(lambda: session(x=x), synchronize)
        state = probe_cuda()
        data = {"gpu": state.gpus[0].name, "driver": state.driver, "runner": session.version,
                "calls": CALLS, "rounds": ROUNDS, "us_per_call": {k: round(v, 2) for k, v in rows.items()}}  # fmt: skip
        bare, graph = rows["bare execute_async_v3"], rows["bare cuGraphLaunch"]
        data["added_us"] = {
            "prepared run in a block": round(rows["prepared run in a block"] - bare, 2),
            "prepared run in a block, CUDA graph": round(rows["prepared run in a block, CUDA graph"] - graph, 2),
            "prepared run": round(rows["prepared run"] - bare, 2),
            "prepared run, CUDA graph": round(rows["prepared run, CUDA graph"] - graph, 2),
            "call with a GPU tensor": round(rows["call with a GPU tensor"] - bare, 2),
        }
        session.close()
    print(json.dumps(data, indent=1))
    if len(sys.argv) > 1:
        write_result(Path(sys.argv[1]), data)


if __name__ == "__main__":
    main()
