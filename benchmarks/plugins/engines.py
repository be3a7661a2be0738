"""Engines with the plugins beside engines of TensorRT's native layers, and torch.compile: one run on one machine.

    python -m benchmarks plugins.engine_models M                          onnx and trtconv, no GPU
    $PY310  -m benchmarks plugins.engines build M LIBRARY                  TensorRT 8.6 (Python 3.10)
    $PY310  -m benchmarks plugins.engines engines M LIBRARY engines.json
    python -m benchmarks plugins.engines torch torch.json KERNELS [OP]    torch, libtrtconv_kernels.so
    $PY310  -m benchmarks plugins.engines build-nets NETS LIBRARY          NETS/NAME/{native,plugin}.onnx
    $PY310  -m benchmarks plugins.engines nets NETS LIBRARY nets.json
    python -m benchmarks plugins.engines table OUT engines.json torch.json nets.json

Engines are built several at a time, and measured one after the other with nothing else on the GPU.
Each time is that of one call inside a CUDA graph that goes round enough different buffers to pass L2 several times
over, the median of the graph's replays, for engines and for torch alike. Copy bandwidth is measured in both processes.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.plugins.engine_table import table
from benchmarks.plugins.shapes import CASES, Case
from benchmarks.record import machine, write_result

if TYPE_CHECKING:
    from trtconv.backends.cuda.memory import CudaMemory, Stream

ROUND_BYTES = 1 << 30
REPLAYS = 15
WARM_S = 0.06
DTYPES = ("float32", "float16")
BATCHES = (1, 8)
BUILDERS = max(5, (os.cpu_count() or 1) // 5)


def build(folder: Path, library: Path) -> None:
    """Every engine of `folder`, each in a process of its own."""
    from benchmarks.plugins.engine_models import measured, path_of

    models = [path_of(folder, c, d, f) for c in measured(folder) for d in DTYPES for f in ("plugin", "native")]
    _in_parallel([["build-one", str(m), str(library), str(m.with_suffix(".engine"))] for m in models])


def build_nets(folder: Path, library: Path) -> None:
    """Both forms of every network; those of one batch size share a timing cache, so that they share convolutions."""
    for form in ("native", "plugin"):
        jobs: list[list[str]] = []
        for net in _nets(folder):
            for batch in BATCHES:
                model, engine = folder / net / f"{form}.onnx", folder / net / f"{form}{batch}.engine"
                cache = folder / net / f"timing{batch}.cache"
                jobs.append(["build-one", str(model), str(library), str(engine), f"N={batch}", str(cache)])
        _in_parallel(jobs)


def _nets(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir() if (p / "plugin.onnx").exists() and (p / "native.onnx").exists())


def _in_parallel(jobs: list[list[str]]) -> None:
    import concurrent.futures
    import subprocess

    def run(words: list[str]) -> None:
        start = time.monotonic()
        command = [sys.executable, "-m", __spec__.name, *words]
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        engine = Path(words[3])
        if process.returncode:
            engine.with_suffix(".error").write_text(process.stderr[-600:])
        print(f"{engine.name}: {process.returncode} after {time.monotonic() - start:.1f} s", flush=True)

    with concurrent.futures.ThreadPoolExecutor(BUILDERS) as pool:
        list(pool.map(run, jobs))


def build_one(model: Path, library: Path, engine: Path, space: str = "", cache: Path | None = None) -> None:
    """Build `engine`, at one size of every dim; with `library` when the model has plugin nodes."""
    from trtconv.build import build_engine
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import parse_space

    plugins = (library,) if ".plugin." in model.name or model.name == "plugin.onnx" else ()
    profiles = (parse_space([space]),) if space else ()
    build_engine(
        BuildRequest(
            model,
            engine,
            dynamic=None,
            profiles=profiles,
            backend="tensorrt",
            plugins=plugins,
            timing_cache=cache,
            options=(("tf32", True),),
        )
    )


def engines(folder: Path, library: Path, output: Path) -> None:
    from benchmarks.plugins.engine_models import measured

    record: dict[str, Any] = {**machine("tensorrt"), "rows": [], "copy_bytes_per_second": 0.0}
    for case in measured(folder):
        record["copy_bytes_per_second"] = max(record["copy_bytes_per_second"], _copy_rate(4 << 30))
        for dtype in DTYPES:
            row: dict[str, Any] = {"case": case.name, "table": case.table, "dtype": dtype, "engines": {}}
            for form in ("plugin", "native"):
                row["engines"][form] = _one_engine(folder, library, case, dtype, form)
            row["bytes"] = row["engines"]["plugin"].get("bytes")
            record["rows"].append(row)
            print(case.name, dtype, {k: v.get("ms", v.get("error")) for k, v in row["engines"].items()}, flush=True)
            write_result(output, record)


def _one_engine(folder: Path, library: Path, case: Case, dtype: str, form: str) -> dict[str, Any]:
    from benchmarks.plugins.engine_models import path_of
    from trtconv.backends.select import backend_of
    from trtconv.backends.tensorrt.manifest import read_engine_manifest
    from trtconv.core.errors import TrtconvError
    from trtconv.core.trust.trust import EngineCode

    engine = path_of(folder, case, dtype, form).with_suffix(".engine")
    if not engine.exists():
        return {"error": _why_not(engine)}
    try:
        libraries = (library,) if form == "plugin" else ()
        session: Any = backend_of(engine).load(engine, plugins=libraries, code=EngineCode(plugins=True))
        row = _replayed(session, case, dtype)
        session.close()
    except TrtconvError as error:
        return {"error": [str(error), *error.details][:5]}
    return {**row, "layers": read_engine_manifest(engine).layers}


def _why_not(engine: Path) -> list[str]:
    path = engine.with_suffix(".error")
    return [path.read_text() if path.exists() else "it was not built in time"]


def _replayed(session: Any, case: Case, dtype: str) -> dict[str, Any]:
    """Milliseconds of one run, going round buffers, and the relative error of the first run."""
    import numpy as np

    from trtconv.backends.cuda.context import CudaGraph

    rng = np.random.default_rng(1)
    some = rng.standard_normal(min(1 << 22, int(np.prod(case.shape)))).astype(dtype)
    x = np.resize(some, tuple(session.inputs[0].shape))  # of a native form perhaps in another layout
    lane = session.prepare({"x": x})
    execution, memory, stream = lane.execution, lane.memory, lane.stream
    result = lane.outputs()["y"]
    error = _relative_error(case, dtype, x, result.numpy())
    size_in, size_out = x.nbytes, x.dtype.itemsize * int(np.prod(result.shape))
    rounds = max(2, min(256, ROUND_BYTES // (size_in + size_out)))
    held = [(memory.allocate(size_in), memory.allocate(size_out)) for _ in range(rounds)]
    for source, _ in held:
        memory.upload(source.pointer, x, stream)
    lane.synchronize()

    def once(source: Any, target: Any) -> None:
        with memory.current():
            execution.context.set_tensor_address("x", source.pointer)
            execution.context.set_tensor_address("y", target.pointer)
            execution.enqueue()

    once(*held[0])
    lane.synchronize()
    with memory.current(), CudaGraph(memory.driver, stream.handle) as graph:
        for pair in held:
            once(*pair)
    ms = 1e3 * _median_seconds(memory, stream, graph.launch) / rounds
    graph.close()
    lane.close()
    return {"ms": ms, "bytes": size_in + size_out, "relative_error": error, "rounds": rounds}


def _relative_error(case: Case, dtype: str, x: Any, y: Any) -> float:
    """Against the plugin's NumPy reference in float64, of the first items of the batch (rows are independent)."""
    import numpy as np

    from benchmarks.plugins.engine_models import expected_of

    groups = max(1, int(case.options.get("groups", 1)))  # rows of one group are those of another bias
    fitting = min(case.shape[0], (1 << 22) // int(np.prod(case.shape[1:])))
    first = groups * max(1, fitting // groups)
    expected = expected_of(case, dtype, x[:first])
    actual = y[:first].astype(np.float64)
    if actual.shape != expected.shape or not np.isfinite(y).all():
        return float("inf")
    return float(np.abs(actual - expected).max() / np.abs(expected).max())


def _median_seconds(memory: CudaMemory, stream: Stream, launch: Callable[[], object]) -> float:
    interval = memory.interval(stream)

    def timed() -> float:
        interval.begin()
        launch()
        interval.end()
        return interval.seconds()

    spent = 0.0
    while spent < WARM_S:
        spent += timed()
    return statistics.median(timed() for _ in range(REPLAYS))


def _copy_rate(total_bytes: int) -> float:
    """Bytes a second, read and written, of the driver's device-to-device copy that moves `total_bytes` in all."""
    from trtconv.backends.cuda.memory import open_cuda_memory

    memory = open_cuda_memory()
    with memory.current():
        stream = memory.create_stream()
        half = total_bytes // 2
        a, b = memory.allocate(half), memory.allocate(half)
        memory.copy(a.pointer, b.pointer, half, stream)
        memory.copy(b.pointer, a.pointer, half, stream)
        seconds = _median_seconds(memory, stream, lambda: memory.copy(b.pointer, a.pointer, half, stream))
    return total_bytes / seconds


def torch_side(output: Path, library: Path, only: str = "") -> None:
    import torch

    from benchmarks.plugins.cases import relative_error, work_of
    from benchmarks.plugins.kernels import copy_rate, replayed_ms
    from benchmarks.plugins.library import Kernels

    kernels = Kernels(library)
    record: dict[str, Any] = {**machine("torch"), "copy_bytes_per_second": copy_rate(4 << 30)}
    record["rows"] = []
    for case in (c for c in CASES if c.op != "adaptive_pool" and only in c.op):
        for dtype in DTYPES:
            kind = getattr(torch, dtype)
            work = work_of(case, kind, kernels)
            size = torch.empty((), dtype=kind).element_size()
            moved = size * (_product(case.shape) + _product(work.out))
            xs = [
                torch.randn(case.shape, device="cuda", dtype=kind)
                for _ in range(max(2, min(256, ROUND_BYTES // moved)))
            ]
            torch._dynamo.reset()
            compiled = torch.compile(work.torch_op, dynamic=False)
            row = {"case": case.name, "dtype": dtype, "bytes": moved}
            row["compile_graph_ms"] = replayed_ms([lambda x=x, f=compiled: f(x) for x in xs])
            ys = [torch.empty(work.out, device="cuda", dtype=kind) for _ in xs]
            row["kernel_ms"] = replayed_ms([lambda x=x, y=y, w=work: w.ours(x, y) for x, y in zip(xs, ys, strict=True)])
            row["relative_error"] = relative_error(work, xs[0])
            row["same_size_copy_bytes_per_second"] = copy_rate(moved)
            record["rows"].append(row)
            print(case.name, dtype, {k: v for k, v in row.items() if k.endswith("_ms")}, flush=True)
            write_result(output, record)


def nets(folder: Path, library: Path, output: Path) -> None:
    """Whole networks with and without plugins, batch 1 and 8 at the example's opt height and width, TF32 on."""
    record: dict[str, Any] = {**machine("tensorrt"), "rows": []}
    for name in _nets(folder):
        for batch in BATCHES:
            row: dict[str, Any] = {"net": name, "batch": batch}
            for form in ("native", "plugin"):
                row[form] = _one_net(folder / name, form, batch, library)
            record["rows"].append(row)
            print(name, batch, {f: row[f].get("ms", row[f].get("error")) for f in ("native", "plugin")}, flush=True)
            write_result(output, record)


def _one_net(folder: Path, form: str, batch: int, library: Path) -> dict[str, Any]:
    from trtconv.backends.runtime.latency import clock_state, measure_engine
    from trtconv.backends.select import backend_of
    from trtconv.core.errors import TrtconvError
    from trtconv.core.model.file import load_model, signature
    from trtconv.core.trust.trust import EngineCode
    from trtconv.proof.points import SamplePoint, sample_inputs

    model, engine = folder / f"{form}.onnx", folder / f"{form}{batch}.engine"
    interface = signature(load_model(model))
    if not engine.exists():
        return {"error": _why_not(engine)}
    try:
        libraries = (library,) if form == "plugin" else ()
        session: Any = backend_of(engine).load(engine, plugins=libraries, code=EngineCode(plugins=True))
        dims = tuple({**interface.space.pick("opt"), "N": batch}.items())
        inputs = sample_inputs(interface.inputs, SamplePoint("bench", dims))
        row = measure_engine(session, inputs, point="opt", cuda_graph=True, seconds=0.7).as_dict()
        session.close()
    except TrtconvError as error:
        return {"error": [error.message, *error.details[:5]]}
    ops = sorted(n.op_type for n in load_model(model).graph.node if n.domain == "trtconv")
    return {
        "ms": row["device"]["median"] * 1e3,
        "device": row["device"],
        "clocks": clock_state(),
        "plugin_nodes": {op: ops.count(op) for op in sorted(set(ops))},
        "shapes": {n: list(a.shape) for n, a in inputs.items()},
    }


def _product(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def main() -> None:
    command, *words = sys.argv[1:]
    paths = [Path(w).resolve() for w in words]
    if command == "build-one":
        build_one(*paths[:3], *words[3:4], *paths[4:])
        return
    run = {"build": build, "build-nets": build_nets, "engines": engines, "nets": nets}
    if command == "table":
        table(paths[0], paths[1], paths[2], paths[3] if len(paths) > 3 else None)
    elif command == "torch":
        torch_side(*paths[:2], *words[2:])
    else:
        run[command](*paths)


if __name__ == "__main__":
    main()
