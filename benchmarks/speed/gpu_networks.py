"""Engines of whole networks beside torch.compile: prepare OUT [NAME ...] | build CASES WORK NAME PRECISION BATCH [LIB]
| measure WORK JSON [LIB] | layers WORK JSON [LIB] | torch JSON [NAME ...]

`prepare` (with torch and timm) exports and rewrites for TensorRT 8.6; the weights are drawn again where they are built.
`PLUGINS=NAME,... prepare` puts plugins in; then LIB is the library that has them. `ALSO="RULE ..."` and `SKIP` are
`--also` and `--skip`, `PRECISIONS="fp16"` what `torch` times. `build`, `measure` and `layers` (the
time of each layer) run in a Python with TensorRT, `torch` in one with torch, in one lease of the same GPU. All
latencies are medians of the device time with a CUDA graph, of calls that are queued: what the host takes for a call
counts on neither side, and stands beside it. Engines are timed in turn, five rounds.
"""

from __future__ import annotations

import json
import os
import re
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.record import machine, write_result
from benchmarks.speed.network_cases import NETWORKS, SIZE, drawn_weights, make

ROUNDS, SECONDS = 5, 0.1
# Calls of torch that are timed, and how long the GPU sleeps first, in times of what they take one by one.
CALLS, HEADSTART, CYCLES_PER_SECOND = 60, 2.0, 1.8e9
# Channels last is tried too; the faster one counts.
CONVOLUTIONAL = (
    "convnext_t", "resnet50", "efficientnet_b0", "mobilenetv3_l", "regnety_032", "resnet18", "resnext50", "regnetx_032",
    "densenet121", "vgg16", "mobilenetv2", "hrnet_w18", "poolformer_s12", "mobilevit_s",
)  # fmt: skip


def prepare(out: Path, names: list[str]) -> None:
    """`OUT/NAME/fp32.onnx` and `fp16.onnx`, without their large weights."""
    import onnx
    import torch

    from benchmarks.precision.gpu_prepare import rewrite
    from benchmarks.precision.recipes import strip_exact
    from networks.torchvision_operators import define_operators

    operators, plugins = define_operators(), os.environ.get("PLUGINS", "never")
    also, skip = (tuple(os.environ.get(name, "").split()) for name in ("ALSO", "SKIP"))
    for name in names or NETWORKS:
        folder, network = out / name, make(name)
        folder.mkdir(parents=True, exist_ok=True)
        batch = torch.export.Dim("N", min=1, max=8)
        program = torch.onnx.export(
            network,
            (torch.randn(2, *SIZE),),
            dynamo=True,
            opset_version=20,
            dynamic_shapes=({0: batch},),
            input_names=["x"],
            output_names=["y"],
        )
        program.save(str(folder / "model.onnx"))
        model = onnx.load(str(folder / "model.onnx"))
        model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N"
        onnx.save(model, str(folder / "model.onnx"))
        for precision in ("fp32", "fp16"):
            rewritten = rewrite(folder, precision, precision, proof=False, plugins=plugins, also=also, skip=skip)
            strip_exact(rewritten, drawn_weights(network))
        print(name, "is ready", flush=True)
    del operators


def build(cases: Path, work: Path, name: str, precision: str, batch: str, library: str = "") -> None:
    """`WORK/NAME.PRECISION.bBATCH.engine`; precision is fp16, or tf32 for FP32 with TF32."""
    from benchmarks.precision.recipes import restore
    from trtconv.backends.tensorrt.backend import TensorRTBackend
    from trtconv.build import build_engine
    from trtconv.core.requests import BuildRequest
    from trtconv.core.shape_space.space import parse_space

    TensorRTBackend.build = TensorRTBackend.build_here  # type: ignore[method-assign]
    work.mkdir(parents=True, exist_ok=True)
    typed = "fp16" if precision == "fp16" else "fp32"
    model = restore(cases / name / f"{typed}.onnx", work / f"{name}.{precision}.b{batch}.onnx")
    request = BuildRequest(
        model, model.with_suffix(".engine"), dynamic=None, profiles=(parse_space([f"N={batch}"]),), backend="tensorrt",
        precision=typed, options=(("tf32", True),), timing_cache=work / f"{name}.{precision}.cache",
        plugins=_libraries(library),
    )  # fmt: skip
    start = time.monotonic()
    build_engine(request)
    print(f"{model.stem}: {time.monotonic() - start:.0f} s", flush=True)


def _libraries(library: str) -> tuple[Path, ...]:
    return (Path(library),) if library else ()


def _load(engine: Path, library: str) -> Any:
    from trtconv.backends.select import backend_of
    from trtconv.core.trust.trust import EngineCode

    return backend_of(engine).load(engine, plugins=_libraries(library), code=EngineCode(plugins=bool(library)))


def layers(work: Path, output: Path, library: str = "") -> None:
    """What each layer of each engine takes, in microseconds, outside of a CUDA graph."""
    results: dict[str, Any] = machine("tensorrt")
    for engine in sorted(work.glob("*.engine")):
        session = _load(engine, library)
        rows = session.layers(runs=20)
        results[engine.stem] = [[r.name[:200], r.kind, r.tactic[:90], round(1e6 * r.seconds, 1)] for r in rows]
        session.close()
        write_result(output, results)


def measure(work: Path, output: Path, library: str = "") -> None:
    """Time all engines, those of one network and batch in turn, and compare them with the first of them.

    What follows a `+` in a network's name tells forms of it apart.
    """
    from trtconv.backends.runtime.latency import measure_engine

    results: dict[str, Any] = machine("tensorrt", "onnx", "pycuda")
    groups: dict[tuple[str, str], list[Path]] = {}
    for engine in sorted(work.glob("*.engine")):
        name, _, batch = re.fullmatch(r"(.*)\.(.*)\.b(\d+)", engine.stem).groups()  # type: ignore[union-attr]
        groups.setdefault((name.partition("+")[0], batch), []).append(engine)
    for (_, batch), engines in groups.items():
        x = np.random.default_rng(1).standard_normal((int(batch), *SIZE), dtype=np.float32).clip(-2, 2)
        sessions = {e.stem: _load(e, library) for e in engines}
        seconds: dict[str, list[float]] = {n: [] for n in sessions}
        for _ in range(ROUNDS):
            for name, session in sessions.items():
                latency = measure_engine(session, {"x": x}, point="opt", cuda_graph=True, seconds=SECONDS, warm_up=0.04)
                seconds[name].append(latency.device.median)
        first: np.ndarray | None = None
        for name, session in sessions.items():
            y = next(iter(session({"x": x}).values())).astype(np.float64)
            first = y if first is None else first
            error = float(np.abs(y - first).max() / np.sqrt((first**2).mean()))
            results[name] = {"ms": round(1e3 * statistics.median(seconds[name]), 4), "error_over_rms": error}
            session.close()
        write_result(output, results)


def run_torch(output: Path, names: list[str]) -> None:
    """torch.compile, mode reduce-overhead (its own CUDA graphs), TF32 on."""
    import torch

    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = True
    torch.backends.cudnn.benchmark = True
    results: dict[str, Any] = {"torch": torch.__version__}
    for name in names or NETWORKS:
        for precision in os.environ.get("PRECISIONS", "fp16 tf32").split():
            for batch in (8, 1):
                layouts = {"nchw": torch.contiguous_format}
                if name in CONVOLUTIONAL:
                    layouts["nhwc"] = torch.channels_last
                times = {n: _torch_times(name, precision, batch, layout) for n, layout in layouts.items()}
                results[f"{name}.{precision}.b{batch}"] = times
                output.write_text(json.dumps(results))


def _torch_times(name: str, precision: str, batch: int, layout: Any) -> dict[str, float | list[float]]:
    """Median milliseconds of a call: `device_ms` on the GPU, `host_ms` until the host has waited for it.

    `device_ms` is the median of `rounds_ms`: the first round is up to 8 % above those behind it.
    """
    import torch

    torch._dynamo.reset()
    network, x = make(name).cuda(), torch.randn(batch, *SIZE, device="cuda").clamp(-2, 2)
    if precision == "fp16":
        network, x = network.half(), x.half()
    network, x = network.to(memory_format=layout), x.contiguous(memory_format=layout)
    compiled, host = torch.compile(network, mode="reduce-overhead", dynamic=False), []
    with torch.inference_mode():
        for _ in range(6):
            compiled(x)
        torch.cuda.synchronize()
        for _ in range(CALLS):
            started = time.perf_counter()
            compiled(x)
            torch.cuda.synchronize()
            host.append(1e3 * (time.perf_counter() - started))
        rounds = []
        for _ in range(ROUNDS):
            events = [[torch.cuda.Event(enable_timing=True) for _ in range(2)] for _ in range(CALLS)]
            # While the GPU sleeps the host queues all calls, which then follow each other as an engine's do.
            torch.cuda._sleep(int(HEADSTART * sum(host) / 1e3 * CYCLES_PER_SECOND))
            for begin, end in events:
                begin.record()
                compiled(x)
                end.record()
            torch.cuda.synchronize()
            rounds.append(statistics.median(begin.elapsed_time(end) for begin, end in events))
    return {"device_ms": statistics.median(rounds), "host_ms": statistics.median(host), "rounds_ms": rounds}


def main(words: list[str]) -> None:
    """Run one of the steps."""
    step, rest = words[0], words[1:]
    if step == "prepare":
        prepare(Path(rest[0]), rest[1:])
    elif step == "build":
        build(Path(rest[0]), Path(rest[1]), *rest[2:])
    elif step == "measure":
        measure(Path(rest[0]), Path(rest[1]), *rest[2:])
    elif step == "layers":
        layers(Path(rest[0]), Path(rest[1]), *rest[2:])
    else:
        run_torch(Path(rest[0]), rest[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
