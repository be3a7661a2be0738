"""Speed of the plugin kernels against copy bandwidth, torch eager and torch.compile, on one GPU, in one run.

    cmake -S . -B build/plugins -DCMAKE_CUDA_ARCHITECTURES=90 -DTRTCONV_CHECKS=ON && cmake --build build/plugins -j
    python -m benchmarks plugins.kernels --library build/plugins/libtrtconv_kernels.so --out results.json

Bytes are counted as each input read once and each output written once. Every time is that of one call inside a CUDA
graph that goes round enough different buffers to pass L2 several times over: the median of the graph's replays. The
copy that a case is compared with is measured alike, once with as many bytes as the case and once with 4 GiB.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import sys
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import torch

from benchmarks.plugins.cases import Work, relative_error, work_of
from benchmarks.plugins.library import Kernels
from benchmarks.plugins.shapes import CASES, Case
from benchmarks.record import write_result

TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3}
ROUND_BYTES = 1 << 30
REPLAYS = 15
WARM_MS = 60.0


def replayed_ms(calls: list[Callable[[], Any]]) -> float:
    """Median milliseconds of one of `calls`, captured together in a CUDA graph."""
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for call in calls:
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        # Results are kept, so that each has memory of its own: one that is written over and over would stay in L2.
        results = [call() for call in calls]
    spent = 0.0
    while spent < WARM_MS:
        spent += _timed(graph.replay)
    median = statistics.median(_timed(graph.replay) / len(calls) for _ in range(REPLAYS))
    del results
    return median


def eager_ms(calls: list[Callable[[], Any]]) -> float:
    """Median milliseconds of one of `calls`, launched one by one."""
    for call in calls[:3]:
        call()
    rounds = [_timed(lambda: [call() for call in calls]) / len(calls) for _ in range(5)]
    return statistics.median(rounds)


def _timed(run: Callable[[], Any]) -> float:
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize()
    start.record()
    run()
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end)


def copy_rate(total_bytes: int) -> float:
    """Bytes a second (read and written) of the fastest device-to-device copy that moves `total_bytes` in all.

    The driver's copy, launched plainly, and an elementwise kernel in a graph; a graph's own copy nodes are slower.
    """
    rounds = max(2, min(256, ROUND_BYTES // max(total_bytes, 1)))
    floats = total_bytes // 8 + 1
    pairs = [(torch.randn(floats, device="cuda"), torch.empty(floats, device="cuda")) for _ in range(rounds)]
    driver: list[Callable[[], Any]] = [lambda a=a, b=b: b.copy_(a) for a, b in pairs]
    kernel: list[Callable[[], Any]] = [lambda a=a, b=b: torch.neg(a, out=b) for a, b in pairs]
    return 8 * floats / (min(eager_ms(driver), replayed_ms(kernel)) * 1e-3)


def measure(
    case: Case, dtype: torch.dtype, kernels: Kernels, options: argparse.Namespace, big: float
) -> dict[str, Any]:
    work = work_of(case, dtype, kernels)
    element = torch.empty((), dtype=dtype).element_size()
    moved = element * (_count(case.shape) + _count(work.out))
    rounds = max(2, min(256, options.round_gib * ROUND_BYTES // moved))
    xs = [torch.randn(case.shape, device="cuda", dtype=dtype) for _ in range(rounds)]
    ys = [torch.empty(work.out, device="cuda", dtype=dtype) for _ in range(rounds)]
    row: dict[str, Any] = {"case": case.name, "table": case.table, "dtype": str(dtype).split(".")[1], "bytes": moved}
    row["relative_error"] = relative_error(work, xs[0])
    row["ms"] = replayed_ms(_ours(work, xs, ys))
    row["same_size_copy_ratio"] = moved / (row["ms"] * 1e-3) / copy_rate(moved)
    row["copy_ratio"] = moved / (row["ms"] * 1e-3) / big
    row["torch_eager_ms"] = eager_ms([lambda x=x: work.torch_op(x) for x in xs[:16]])
    if options.compile == "all" or (options.compile == "table" and case.table):
        torch._dynamo.reset()
        compiled = torch.compile(work.torch_op, dynamic=False)
        row["compile_ms"] = eager_ms([lambda x=x: compiled(x) for x in xs[:16]])
        row["compile_graph_ms"] = replayed_ms([lambda x=x: compiled(x) for x in xs])
    for tuning in _tunings(case) if options.tune else []:
        label = " ".join(f"{k}={v}" for k, v in tuning.items())
        try:
            row.setdefault("tuned_ms", {})[label] = replayed_ms(_ours(work_of(case, dtype, kernels, tuning), xs, ys))
        except RuntimeError as error:
            if "error 9" not in str(error):  # an invalid configuration: not for this shape
                raise
    return row


def _ours(work: Work, xs: list[torch.Tensor], ys: list[torch.Tensor]) -> list[Callable[[], Any]]:
    return [lambda x=x, y=y: work.ours(x, y) for x, y in zip(xs, ys, strict=True)]


def _tunings(case: Case) -> list[dict[str, int]]:
    """The other routes of a kernel (see the Route of its kernel.h) and ways to cut the work."""
    if case.op == "l2norm":
        return _l2norm_tunings(case.shape)
    if case.op == "instance_norm":
        return [*({"route": r} for r in (1, 4, 5, 7, 11, 14)), *({"route": 3, "cluster": n} for n in (2, 4, 8, 16))]
    if case.op == "reflection_pad":
        return [{"route": r} for r in (1, 7, 15)]
    if case.op == "depthwise_conv_layer_norm":
        return [{"tile": t, "groups": g} for t in (1, 2, 3) for g in (1, 2, 4)]
    return []


def _l2norm_tunings(shape: tuple[int, ...]) -> list[dict[str, int]]:
    """Rows of one position: lanes to a row, threads to a block. Others: windows of granules and clusters of blocks."""
    if shape[2:] == (1, 1):
        cuts = [(32, 128), (32, 256), (64, 128), (64, 256), (96, 96)]
        return [{"route": 2}, *({"route": 4, "lanes": n, "threads": t} for n, t in cuts)]
    return [{"route": 1}, *({"route": 3, "lanes": n, "cluster": c} for n in (8, 16) for c in (1, 2, 4, 8))]


def _count(shape: tuple[int, ...]) -> int:
    total = 1
    for size in shape:
        total *= size
    return total


def profile(kernels: Kernels) -> None:
    """Run each case once, for ncu."""
    for case in CASES:
        for dtype in TOLERANCE:
            work = work_of(case, dtype, kernels)
            x = torch.randn(case.shape, device="cuda", dtype=dtype)
            work.ours(x, torch.empty(work.out, device="cuda", dtype=dtype))
    torch.cuda.synchronize()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--library", type=Path, required=True)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--compile", choices=["all", "table", "none"], default="all")
    parser.add_argument("--tune", action="store_true", help="also time each way of splitting the work")
    parser.add_argument("--round-gib", type=int, default=1, help="bytes that a graph goes round; more leave less in L2")
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--profile", action="store_true", help="only launch the kernels, for ncu")
    options = parser.parse_args()
    kernels = Kernels(options.library)
    if options.profile:
        profile(kernels)
        return 0
    big = copy_rate(4 << 30)
    result: dict[str, Any] = {
        "date": datetime.now(timezone.utc).strftime("%Y-%m-%d"),
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "python": platform.python_version(),
        "command": " ".join(["python", *sys.argv]),
        "copy_bytes_per_second": big,
        "rows": [],
    }
    print(f"copy {big / 1e12:.3f} TB/s (4 GiB)")
    failed = False
    for case in CASES:
        for dtype in TOLERANCE:
            if options.only not in case.name:
                continue
            row = measure(case, dtype, kernels, options, big)
            failed |= not row["relative_error"] <= TOLERANCE[dtype]
            result["rows"].append(row)
            _show(row)
            if options.out:
                write_result(options.out, result)
    print("WRONG RESULTS" if failed else "all results within tolerance")
    return 1 if failed else 0


def _show(row: dict[str, Any]) -> None:
    times = " ".join(f"{k[:-3]} {row[k]:.4f}" for k in ("torch_eager_ms", "compile_ms", "compile_graph_ms") if k in row)
    print(
        f"{row['case']} {row['dtype']}: {row['ms']:.4f} ms, copy ratio {row['copy_ratio']:.3f} "
        f"(same size {row['same_size_copy_ratio']:.3f}), error {row['relative_error']:.1e}; {times}"
    )
    for label, ms in row.get("tuned_ms", {}).items():
        print(f"    {label}: {ms if isinstance(ms, str) else f'{ms:.4f}'}")


if __name__ == "__main__":
    sys.exit(main())
