"""Runs on pycuda arrays just filled, on a GPU that others use too: speed/gpu_array_order.py JSON [LOADS]

With and without waiting for the default stream, on which pycuda copies: how many runs gave another result than ONNX
Runtime, and the microseconds of a run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import machine, write_result
from tests.backends.onnx_models import conv_net
from trtconv.backends.cuda import array_interface
from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.select import backend_of
from trtconv.build import build_engine
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace

SECONDS, ROWS, WRONG = 30, 2, 1e-3
# Copies and products without end, by the torch of another interpreter.
LOAD = """
import torch
host, a = torch.randn(64 << 20), torch.randn(4096, 4096, device="cuda")
while True:
    host.cuda(), (a @ a).sum().item()
"""


def measure(session: Any, inputs: list[Any], expected: list[Any]) -> dict[str, float]:
    """Run for SECONDS, each time on an array that was filled just before."""
    from pycuda import gpuarray

    wrong, worst, runs, start = 0, 0.0, 0, time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        case = runs % len(inputs)
        output = session(x=gpuarray.to_gpu(inputs[case]))["y"]
        error = float(np.abs(output.gpuarray().get() - expected[case]).max())
        wrong, worst, runs = wrong + (error > WRONG), max(worst, error), runs + 1
    return {"runs": runs, "wrong": wrong, "worst": worst, "us_each": 1e6 * (time.perf_counter() - start) / runs}


def main(path: Path, loads: int) -> None:
    """Measure both ways twice, in turn, beside `loads` processes that use the GPU."""
    os.environ["TRTCONV_CUDA"] = "pycuda"
    import pycuda.driver as cuda

    cuda.init()
    context = cuda.Device(0).retain_primary_context()
    plain = {n: v for n, v in os.environ.items() if n not in ("PYTHONPATH", "LD_LIBRARY_PATH")}
    others = [subprocess.Popen(["python3", "-c", LOAD], env=plain) for _ in range(loads)]
    try:
        with tempfile.TemporaryDirectory() as folder:
            model = conv_net(Path(folder) / "conv.onnx", depth=2)
            engine = Path(folder) / "conv.engine"
            build_engine(BuildRequest(model=model, output=engine, backend="tensorrt", dynamic=ShapeSpace()))
            session = backend_of(engine).load(engine)
            reference = OnnxRuntimeRunner(model)
        context.push()
        inputs = [np.random.default_rng(i).standard_normal((ROWS, 3, 32, 32)).astype(np.float32) for i in range(8)]
        expected = [reference({"x": x})["y"] for x in inputs]
        waits, sides = array_interface.wait_for, {"waits": [], "does not wait": []}
        for side in (*sides, *sides):
            array_interface.wait_for = waits if side == "waits" else lambda *_: None
            sides[side].append(measure(session, inputs, expected))
            print(side, sides[side][-1], flush=True)
    finally:
        for other in others:
            other.kill()
    write_result(path, {**machine("tensorrt", "pycuda"), "loads": loads, "rows": ROWS, **sides})
    # pycuda's context outlives what the session frees at exit.
    os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 4)
