"""The kernels that go into engines, run outside one: values against the references, and time against copying.

    python -m benchmarks plugins.embedded_kernels --out results.json     # a GPU, its driver, NVRTC and NumPy are enough

A kernel is compiled and launched as TensorRT would be told to: PTX by NVRTC for this GPU; grid, block, shared memory
and scalar arguments from the expressions, made once for a range of shapes and evaluated at each. Without TensorRT.
Bytes are counted as each input read once and each output written once; times are of CUDA graphs over enough buffers to
pass L2.
"""

from __future__ import annotations

import argparse
import ctypes
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.plugins.cuda_launch import Cuda
from benchmarks.record import write_result
from tests.plugins.cases import CASES, Case, l2, norm, pad, pool
from trtconv.backends.cuda.driver import Gpu, probe_cuda
from trtconv.backends.cuda.nvrtc import Nvrtc, architecture_for, compile_kernel, open_nvrtc
from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Dim, Size, evaluate
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import find_plugin

TOLERANCE = {"float32": 1e-5, "float16": 2e-3}
ROUND_BYTES = 1 << 29
# Larger than the cases of the tests: several tiles, packs of every width, planes by warps and by blocks.
MORE: tuple[Case, ...] = (
    l2((2, 512, 40, 40)), l2((1, 256, 33, 31)), l2((3, 4096, 5, 4), eps_mode="max"), l2((1, 5000, 7, 9)),
    l2((700, 256)), l2((9, 2048)), l2((5, 8000)), l2((2, 64, 17, 18), eps_mode="inside", epsilon=1e-3),
    norm((2, 24, 64, 64)), norm((3, 5, 31, 37), offset=20.0, relu="yes"), norm((600, 3, 40, 30)),
    norm((2, 7, 104, 104)), norm((5, 9, 16, 16)), pad((2, 8, 65, 127), (7, 1, 0, 9)),
    pad((1, 3, 256, 256), (40, 40, 40, 40)),
    pool((2, 5, 100, 61), (7, 3), "max"), pool((3, 4, 300, 257), (1, 1), "average"),
    pool((2, 3, 33, 33), (40, 40), "max"),
    pool((1, 2, 700, 900), (2, 3), "average"),
)  # fmt: skip
TIMED: tuple[Case, ...] = (
    l2((8, 512, 40, 40)), l2((8, 256, 80, 80)), l2((8, 512, 38, 38)), l2((8192, 768)),
    norm((8, 128, 64, 64)), norm((8, 64, 96, 96)), norm((8, 256, 16, 16)),
    pad((8, 32, 256, 256), (4, 4, 4, 4)), pad((8, 64, 127, 127), (1, 1, 1, 1)),
    pool((8, 512, 40, 40), (1, 1), "average"), pool((8, 256, 56, 56), (7, 7), "average"),
)  # fmt: skip


@dataclass(frozen=True)
class Machine:
    cuda: Cuda
    gpu: Gpu
    nvrtc: Nvrtc


def axes_free(case: Case) -> tuple[int, ...]:
    """The axes that a network might leave dynamic: not the one that L2Norm divides along."""
    fixed_dim = case.attributes.get("axis", 1) if case.op_type == "TrtconvL2Norm" else -1
    return tuple(a for a in range(len(case.shapes[0])) if a != fixed_dim)


def kernel_of(case: Case, dtype: str, gpu: Gpu, *, fixed: bool) -> EmbeddedKernel:
    plugin = embedded_plugin(find_plugin(case.op_type))
    free = () if fixed else axes_free(case)
    inputs = []
    for number, shape in enumerate(case.shapes):
        dims: tuple[Size, ...] = tuple(Dim(number, a) if number == 0 and a in free else d for a, d in enumerate(shape))
        inputs.append(EmbeddedInput(dtype, dims, shape, shape))
    target = KernelTarget(gpu.compute_capability, gpu.multiprocessors)
    return plugin.kernel(inputs, plugin.checked(case.attributes), target)


class Launcher:
    """One kernel, loaded."""

    def __init__(self, machine: Machine, kernel: EmbeddedKernel) -> None:
        architecture = architecture_for(machine.nvrtc, machine.gpu.compute_capability)
        compiled = compile_kernel(machine.nvrtc, kernel.source, architecture)
        self.cuda, self.kernel = machine.cuda, kernel
        self.function = machine.cuda.function(compiled.ptx, kernel.entry)

    def __call__(self, shapes: Sequence[tuple[int, ...]], inputs: Sequence[Any], output: Any) -> None:
        k = self.kernel
        geometry = evaluate(k.grid, shapes), evaluate(k.block, shapes), evaluate(k.shared, shapes)
        scalars = [ctypes.c_int32(evaluate(size, shapes)) for _, size in k.arguments]
        self.cuda.launch(self.function, geometry, [*inputs, *scalars, output])


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    if not actual.size:
        return 0.0
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / max(np.abs(expected.astype(np.float64)).max(), 1e-12))


def compare(machine: Machine, case: Case, dtype: str, *, fixed: bool) -> dict[str, Any]:
    """One kernel for the case's shape, run at it; a dynamic one at two shapes more."""
    cuda, launcher = machine.cuda, Launcher(machine, kernel_of(case, dtype, machine.gpu, fixed=fixed))
    worst = 0.0
    for step in (0,) if fixed or 0 in case.shapes[0] else (0, 1, 3):
        free = axes_free(case) if case.op_type != "TrtconvInstanceNorm" else (0, 2, 3)
        first = tuple(d + step if a in free else d for a, d in enumerate(case.shapes[0]))
        other = Case(case.op_type, (first, *case.shapes[1:]), case.attributes, case.offset)
        arrays = other.arrays(dtype, seed=step)
        expected = find_plugin(case.op_type).evaluate(arrays, case.attributes)[0]
        inputs = [cuda.upload(a) for a in arrays]
        output = cuda.allocate(expected.nbytes)
        cuda.fill(output, expected.nbytes)
        launcher(other.shapes, inputs, output)
        cuda.synchronize()
        error = relative_error(cuda.download(output, expected.shape, expected.dtype), expected)
        worst = max(worst, error if np.isfinite(error) else np.inf)
        cuda.free([*inputs, output])
    return {"case": str(case), "dtype": dtype, "fixed": fixed, "error": worst, "good": worst <= TOLERANCE[dtype]}


def measure(machine: Machine, case: Case, dtype: str, *, fixed: bool) -> dict[str, Any]:
    """Milliseconds of the kernel and of a copy of as many bytes, in the same run."""
    cuda, launcher = machine.cuda, Launcher(machine, kernel_of(case, dtype, machine.gpu, fixed=fixed))
    item = np.dtype(dtype).itemsize
    expected = find_plugin(case.op_type).output_shapes(case.shapes, case.attributes)[0]
    moved = item * (sum(int(np.prod(s)) for s in case.shapes) + int(np.prod([int(d or 0) for d in expected])))
    count = max(2, min(64, -(-ROUND_BYTES // moved)))
    sets = []
    for seed in range(count):
        inputs = (
            [cuda.upload(a) for a in case.arrays(dtype, seed)]
            if seed == 0
            else [cuda.allocate(item * int(np.prod(s))) for s in case.shapes]
        )
        sets.append((inputs, cuda.allocate(item * int(np.prod([int(d or 0) for d in expected])))))
    for inputs, _ in sets[1:]:
        for to, source, shape in zip(inputs, sets[0][0], case.shapes, strict=True):
            cuda.copy(to, source, item * int(np.prod(shape)))
    own = cuda.milliseconds([lambda i=i, o=o: launcher(case.shapes, i, o) for i, o in sets])
    half = moved // 2
    buffers = [(cuda.allocate(half), cuda.allocate(half)) for _ in range(count)]
    plain = cuda.milliseconds([lambda a=a, b=b: cuda.copy(b, a, half) for a, b in buffers])
    cuda.free([p for inputs, output in sets for p in (*inputs, output)] + [p for pair in buffers for p in pair])
    return {"case": str(case), "dtype": dtype, "fixed": fixed, "bytes": moved, "ms": own, "copy_ms": plain,
            "share_of_copy": plain / own, "gigabytes_per_second": moved / own / 1e6}  # fmt: skip


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--values-only", action="store_true")
    options = parser.parse_args(arguments)
    state = probe_cuda()
    machine = Machine(Cuda(), state.gpus[0], open_nvrtc(state.driver))
    result: dict[str, Any] = {
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        "gpu": machine.gpu.name,
        "driver": state.driver,
        "nvrtc": ".".join(map(str, machine.nvrtc.version)),
        "values": [],
        "times": [],
    }

    def save() -> None:
        if options.out:
            write_result(options.out, result)

    for case in (*CASES, *MORE):
        for dtype in TOLERANCE:
            for fixed in (True, False):
                comparison = compare(machine, case, dtype, fixed=fixed)
                result["values"].append(comparison)
                if not comparison["good"]:
                    print("WRONG", comparison)
        save()
    wrong = sum(not v["good"] for v in result["values"])
    print(f"{len(result['values'])} kernels, {wrong} wrong")
    for case in () if options.values_only else TIMED:
        for dtype in TOLERANCE:
            for fixed in (True, False):
                timing = measure(machine, case, dtype, fixed=fixed)
                result["times"].append(timing)
                print(
                    f"{timing['case']:60} {dtype} {'fixed' if fixed else 'free':5} {timing['ms'] * 1e3:8.1f} us "
                    f"{timing['share_of_copy']:.2f} of copy"
                )
        save()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
