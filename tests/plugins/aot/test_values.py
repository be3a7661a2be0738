"""What the embedded kernels compute, run on the CPU: their C++ with the launches that an engine would make of it.

The entries are compiled for the CPU against a small CUDA of fibers (host_cuda/), and called with grid, block and
arguments from the expressions. It shows that arguments arrive in the right places and that every element is written
with the right value; it says nothing of PTX, of a GPU's memory model or of speed.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.plugins.aot.test_bindings import cuda_include
from tests.plugins.cases import EMBEDDED, Array, Case, attention, depthwise, group_norm, l2, layer_norm, norm, pad, pool
from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Dim, Size, evaluate
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import find_plugin

pytestmark = pytest.mark.slow

HOST = Path(__file__).parents[1] / "host_cuda"
TOLERANCE = {"float32": 1e-5, "float16": 2e-3}
GUARD = 256  # bytes before and behind a tensor that nobody may touch
# A small GPU, so that blocks of InstanceNorm stay and take several planes.
SMALL = KernelTarget("8.0", 2)
MORE: tuple[Case, ...] = (
    l2((1, 300, 3, 12)), l2((2, 4100, 2, 3)), l2((2, 130, 1, 1), eps_mode="max"), l2((3, 1100)), l2((1, 40, 33, 3)),
    l2((3, 64, 5, 11)), l2((2, 512, 3, 19), eps_mode="inside"), l2((5, 768)), l2((3, 4096)), l2((2, 24, 1, 1)),
    norm((5, 7, 24, 30), offset=20.0), norm((2, 3, 50, 41), relu="yes"), norm((3, 2, 16, 16)), norm((1, 1, 64, 64)),
    pad((1, 2, 40, 61), (3, 9, 0, 2)), pad((1, 1, 70, 64), (1, 1, 1, 1)),
    pool((1, 2, 40, 37), (3, 2), "max"), pool((1, 1, 150, 130), (1, 1), "average"),
    pool((2, 1, 9, 9), (12, 5), "average"),
    depthwise((1, 5, 9, 96)), depthwise((1, 2, 10, 33), 5), depthwise((1, 2, 3, 1060), 3),
    attention(2, (49, 49), 3, 32, (2, 3, 49, 49), packed=True), attention(1, (65, 130), 2, 64),
    attention(1, (3, 40), 1, 72), attention(1, (17, 64), 1, 128, (1, 1, 17, 64)),
    attention(1, (20, 33), 2, 24, (1, 2, 20, 33), packed=True), attention(2, (1, 1), 2, 40, (2, 1, 1, 1)),
    group_norm((3, 9, 11, 40)), group_norm((2, 30, 31, 8), 8.0, mixed="yes"), group_norm((1, 13, 2, 5), mixed="yes"),
    layer_norm((3, 5, 320)), layer_norm((9, 768), 8.0), layer_norm((2, 3, 2056)), layer_norm((1, 5, 130)),
)  # fmt: skip

Run = Callable[[list[int], list[ctypes._SimpleCData]], None]  # type: ignore[type-arg]


def moves(case: Case, number: int, axis: int) -> bool:
    """Whether the dim of that input is one of those that the tests move."""
    if case.op_type == "TrtconvAttention":
        return axis == 1 if number < 3 else axis > 1 and case.shapes[3][axis] > 1
    return number == 0 and axis != shared_dims(case)


def other_shapes(case: Case) -> tuple[tuple[int, ...], ...]:
    """The shapes of the case with all that moves at another parity."""
    if case.op_type == "TrtconvAttention":
        (batch, rows, width), (_, keys, others), *_, bias = case.shapes
        more = (*bias[:2], bias[2] + 2 * (bias[2] > 1), bias[3] + (bias[3] > 1))
        return ((batch, rows + 2 * (rows > 1), width), *((batch, keys + (keys > 1), others),) * 2, more)
    if case.op_type == "TrtconvDepthwiseConv":
        batch, pixels, channels = case.shapes[0]
        return ((batch + 1, pixels + case.attributes["width"], channels), *case.shapes[1:])
    dims = shared_dims(case)
    return (tuple(d + (a % 2 + 1) * (a != dims) for a, d in enumerate(case.shapes[0])), *case.shapes[1:])


def shared_dims(case: Case) -> int:
    """The axis whose size other inputs share, or that has to be fixed; -1 for none."""
    if case.op_type == "TrtconvL2Norm":
        return int(case.attributes.get("axis", 1))
    if case.op_type == "TrtconvLayerNorm":
        return len(case.shapes[0]) - 1
    axes = {"TrtconvInstanceNorm": 1, "TrtconvDepthwiseConv": 2}
    axes |= dict.fromkeys(("TrtconvDepthwiseConvLayerNorm", "TrtconvGroupNorm"), 3)
    return axes.get(case.op_type, -1)


def kernel_of(case: Case, dtype: str, *, fixed: bool) -> EmbeddedKernel:
    plugin = embedded_plugin(find_plugin(case.op_type))
    inputs = []
    for number, shape in enumerate(case.shapes):
        dims: tuple[Size, ...] = tuple(
            Dim(number, a) if not fixed and moves(case, number, a) else d for a, d in enumerate(shape)
        )
        inputs.append(EmbeddedInput(dtype, dims, shape, shape))
    return plugin.kernel(inputs, plugin.checked(case.attributes), SMALL)


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Callable[[EmbeddedKernel], Any]:
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    folder, include = tmp_path_factory.mktemp("entries"), cuda_include()

    def make(kernel: EmbeddedKernel) -> Any:
        library = folder / f"{kernel.entry}.so"
        if not library.exists():
            root = kernel.source.path.parent
            command = [
                "g++",
                "-std=c++17",
                "-O1",
                "-shared",
                "-fPIC",
                "-w",
                "-fno-extern-tls-init",
                "-o",
                str(library),
                str(HOST / "run.cpp"),
            ]
            for project in (HOST, root / "device", root.parent, include, include / "cccl"):
                command.append(f"-I{project}")
            command += [f"-D{k}={v}" for k, v in kernel.source.macros]
            command.append(f'-DTRTCONV_FILE="aot/{kernel.source.path.name}"')
            process = subprocess.run(command, capture_output=True, text=True, check=False)
            assert process.returncode == 0, process.stderr[-3000:]
        return ctypes.CDLL(str(library))

    return make


class Buffer:
    """A tensor on a multiple of 256 bytes between guards."""

    def __init__(self, array: Array) -> None:
        self.bytes = np.full(array.nbytes + 3 * GUARD, 0xFF, np.uint8)
        skip = -self.bytes.ctypes.data % GUARD + GUARD
        self.begin, self.end = skip, skip + array.nbytes
        self.array = self.bytes[self.begin : self.end].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self.pointer = ctypes.c_void_p(self.bytes.ctypes.data + skip)

    @property
    def guarded(self) -> bool:
        return bool((self.bytes[: self.begin] == 0xFF).all() and (self.bytes[self.end :] == 0xFF).all())


def run(library: Any, kernel: EmbeddedKernel, case: Case, dtype: str) -> tuple[Array, Array]:
    """What the kernel wrote, and what the reference says."""
    arrays = case.arrays(dtype)
    expected = find_plugin(case.op_type).evaluate(arrays, case.attributes)[0]
    inputs = [Buffer(a) for a in arrays]
    output = Buffer(np.full(expected.shape, np.nan, expected.dtype))
    scalars = [ctypes.c_int32(evaluate(size, case.shapes)) for _, size in kernel.arguments]
    values = [*(i.pointer for i in inputs), *scalars, output.pointer]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    grid, block = evaluate(kernel.grid, case.shapes), evaluate(kernel.block, case.shapes)
    library.run(ctypes.c_uint32(grid), ctypes.c_uint32(block), pointers)
    assert output.guarded
    for buffer, array in zip(inputs, arrays, strict=True):
        assert (buffer.array == array).all()
    return output.array, expected


def relative_error(actual: Array, expected: Array) -> float:
    if actual.size == 0:
        return 0.0
    difference = np.abs(actual.astype(np.float64) - expected.astype(np.float64)).max()
    return float(difference / max(np.abs(expected.astype(np.float64)).max(), 1e-12))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fixed", [True, False], ids=["fixed", "dynamic"])
@pytest.mark.parametrize("case", [*EMBEDDED, *MORE], ids=str)
def test_values(compiled: Callable[[EmbeddedKernel], Any], case: Case, dtype: str, fixed: bool) -> None:
    kernel = kernel_of(case, dtype, fixed=fixed)
    library = compiled(kernel)
    shapes = [case.shapes]
    if not fixed and 0 not in case.shapes[0]:
        shapes.append(other_shapes(case))  # the same kernel at sizes of another parity
    for several in shapes:
        other = Case(case.op_type, several, case.attributes, case.offset)
        actual, expected = run(library, kernel, other, dtype)
        assert relative_error(actual, expected) <= TOLERANCE[dtype], (several, actual.ravel()[:5], expected.ravel()[:5])
