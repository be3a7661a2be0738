"""A kernel that lies in an engine is launched as the library launches it: same kernel, grid, block and shared memory.

The library's launchers run here over a CUDA runtime that only writes down what they launch; the engine's side is
evaluated from the expressions that TensorRT would get, made once for a whole range of shapes.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.sizes import Dim, evaluate
from trtconv.plugins.aot.instance_norm import MOST_SHARED
from trtconv.plugins.aot.l2norm import choose_lanes
from trtconv.plugins.aot.launch import ELEMENT_NUMBERS
from trtconv.plugins.aot.launch import SIZES as SIZE
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import find_plugin

pytestmark = pytest.mark.slow

H200 = KernelTarget("9.0", 132)
SOURCES = Path(__file__).resolve().parents[3] / "plugins_src"
Shape = tuple[int, ...]
ANY_ROUTE, WARP, BLOCK = 0, 1, 2
"""Numbers of instance_norm::Route."""


@pytest.fixture(scope="module")
def recorder(tmp_path_factory: pytest.TempPathFactory) -> Any:
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        pytest.skip("needs nvcc")
    library = tmp_path_factory.mktemp("recorder") / "librecorder.so"
    files = [Path(__file__).parents[1] / "launch_recorder.cpp"]
    files += [SOURCES / p / "kernel.cu" for p in ("l2norm", "instance_norm", "reflection_pad", "adaptive_pool")]
    # No machine code: the kernels are not run.
    command = [nvcc, "-std=c++17", "-gencode", "arch=compute_90,code=compute_90", "-cudart=none", "-shared"]
    command += ["-Xcompiler", "-fPIC", "-Xlinker", "--no-undefined", f"-I{SOURCES}", "-o", library, *files]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr[-3000:]
    return ctypes.CDLL(str(library))


def recorded(function: Any, *values: Any) -> tuple[str, tuple[str, ...], int, int, int]:
    """The one launch: kernel, its template arguments, grid, block, shared bytes."""
    function.restype = ctypes.c_char_p
    text = function(*(ctypes.c_int64(v) if isinstance(v, int) else v for v in values)).decode()
    lines = text.splitlines()
    assert len(lines) == 1, text
    name, grid, block, shared = lines[0].split()
    plain = subprocess.run(["c++filt", name], capture_output=True, text=True, check=True).stdout
    match = re.search(r"::(\w+)<([^>]*)>\(", plain)
    assert match, plain
    arguments = tuple(re.sub(r"\([\w:]+\)", "", a).strip() for a in match[2].split(","))
    return match[1], arguments, int(grid), int(block), int(shared)


def launch(op_type: str, opt: list[Shape], dtype: str, dynamic: tuple[int, ...], **attributes: Any) -> EmbeddedKernel:
    """The kernel for an input whose `dynamic` axes are not fixed; the profile reaches to four times the opt shape."""
    inputs = []
    for number, shape in enumerate(opt):
        axes = dynamic if number == 0 else ()
        dims = tuple(Dim(number, a) if a in axes else d for a, d in enumerate(shape))
        high = tuple(4 * d if a in axes else d for a, d in enumerate(shape))
        inputs.append(EmbeddedInput(dtype, dims, shape, high))
    plugin = embedded_plugin(find_plugin(op_type))
    return plugin.kernel(inputs, plugin.checked(attributes), H200)


def geometry(kernel: EmbeddedKernel, *shapes: Shape) -> tuple[int, int, int]:
    return evaluate(kernel.grid, shapes), evaluate(kernel.block, shapes), evaluate(kernel.shared, shapes)


def argument(kernel: EmbeddedKernel, name: str, *shapes: Shape) -> int:
    return evaluate(dict(kernel.arguments)[name], shapes)


def macro(kernel: EmbeddedKernel, name: str) -> str:
    return dict(kernel.source.macros)[f"TRTCONV_{name}"]


IMAGES: list[Shape] = [(1, 1, 2, 2), (1, 3, 7, 9), (2, 5, 16, 24), (1, 32, 40, 40), (4, 3, 33, 8), (8, 3, 65, 67)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("pads", [(1, 1, 1, 1), (0, 1, 1, 0)])
def test_reflection_pad(recorder: Any, dtype: str, pads: tuple[int, ...]) -> None:
    anywhere = launch("TrtconvReflectionPad", [(2, 4, 32, 32)], dtype, (0, 1, 2, 3), pads=pads)
    for shape in IMAGES:
        fixed = launch("TrtconvReflectionPad", [shape], dtype, (), pads=pads)
        planes, (height, width) = shape[0] * shape[1], shape[2:]
        name, arguments, *expected = recorded(
            recorder.record_reflection_pad, ELEMENT_NUMBERS[dtype], planes, height, width, (ctypes.c_int * 4)(*pads)
        )
        if dtype == "float32":
            assert (name, arguments[1:]) == ("padGathered", ("2",))
        else:
            assert (name, arguments[1:]) == ("padGranules", ("2", "true"))
        for kernel in (anywhere, fixed):
            assert geometry(kernel, shape) == tuple(expected)
            assert [argument(kernel, n, shape) for n in ("planes", "height", "width")] == [planes, height, width]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("size", [(1, 1), (3, 5), (7, 2)])
def test_adaptive_pool(recorder: Any, dtype: str, size: tuple[int, int]) -> None:
    anywhere = launch("TrtconvAdaptivePool", [(2, 4, 32, 32)], dtype, (0, 2, 3), output_size=size)
    groups = set()
    # With one output the next ones have bins of exactly 16, 256 and 8192 values, up to which fewer threads share a bin.
    edges = [(2, 4, 3, 3), (1, 4, 15, 15), (1, 4, 63, 127)]
    for shape in [(n, 4, h, w) for n, _, h, w in IMAGES] + [(1, 4, 300, 257), (3, 4, 100, 61), *edges]:
        fixed = launch("TrtconvAdaptivePool", [shape], dtype, (), output_size=size)
        name, arguments, *expected = recorded(
            recorder.record_adaptive_pool, ELEMENT_NUMBERS[dtype], shape[0] * shape[1], *shape[2:], *size
        )
        assert (name, arguments[2]) == ("pool", "true")
        groups.add(int(arguments[1]))
        for kernel in (anywhere, fixed):
            assert geometry(kernel, shape) == tuple(expected)
            assert argument(kernel, "group", shape) == int(arguments[1])
        assert macro(fixed, "GROUP") == arguments[1]
    assert len(groups) >= 3, "the shapes are to cover small, medium and large bins"


COLUMNS: list[Shape] = [(2, 7, 5, 3), (1, 1024, 40, 40), (3, 20, 16, 16), (1, 4096, 3, 4), (1, 5000, 2, 6),
                        (16, 1000, 38, 38), (1, 601, 80, 80), (3, 100, 1, 9)]  # fmt: skip
WINDOWS: list[Shape] = [(1, 512, 40, 40), (8, 256, 75, 75), (1, 256, 80, 80), (1, 64, 1, 9), (16, 512, 38, 38),
                        (16, 512, 64, 64), (32, 128, 19, 19), (300, 64, 7, 7)]  # fmt: skip
SIZES: list[tuple[int, int]] = [(1, 5), (6, 7), (8, 8), (31, 4), (75, 75)]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("opt", COLUMNS, ids=str)
def test_l2norm_columns(recorder: Any, dtype: str, opt: Shape) -> None:
    batch, channels, height, width = opt
    if channels * SIZE[dtype] % 16 == 0 and channels <= 512:
        pytest.skip("windows take it")
    kernel = launch("TrtconvL2Norm", [opt, (channels,)], dtype, (0, 2, 3))
    inputs = [EmbeddedInput(dtype, opt, opt, opt)]
    for shape in [opt, *((n, channels, h, w) for n in (1, batch, 3) for h, w in SIZES)]:
        outer, inner = shape[0], shape[2] * shape[3]
        fixed = launch("TrtconvL2Norm", [shape, (channels,)], dtype, ())
        lanes = choose_lanes(inputs, (batch, channels, height * width), H200)
        own = choose_lanes([EmbeddedInput(dtype, shape, shape, shape)], (outer, channels, inner), H200)
        for result, feeds in ((kernel, lanes), (fixed, own)):
            values = ELEMENT_NUMBERS[dtype], outer, channels, inner, feeds, 0
            name, arguments, *expected = recorded(recorder.record_l2norm, *values)
            assert geometry(result, shape, (channels,)) == tuple(expected), shape
            pack = argument(result, "pack", shape, (channels,))
            if name == "heldColumns":
                assert (str(pack), macro(result, "ITEMS")) == arguments[1:], shape
            else:
                assert (name, pack) == ("reloadedColumns", 0), shape
            assert 1 << argument(result, "lanes_log2", shape, (channels,)) == (32 if pack == 0 else feeds)
            assert outer * argument(result, "tiles", shape, (channels,)) == expected[0]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("opt", WINDOWS, ids=str)
def test_l2norm_windows(recorder: Any, dtype: str, opt: Shape) -> None:
    channels = opt[1]
    kernel = launch("TrtconvL2Norm", [opt, (channels,)], dtype, (0, 2, 3))
    for shape in [opt, *((n, channels, h, w) for n in (1, opt[0], 3) for h, w in SIZES)]:
        fixed = launch("TrtconvL2Norm", [shape, (channels,)], dtype, ())
        inner, shapes = shape[2] * shape[3], (shape, (channels,))
        for result in (kernel, fixed):
            values = ELEMENT_NUMBERS[dtype], shape[0], channels, inner, int(macro(result, "LANES")), 1
            name, arguments, *expected = recorded(recorder.record_l2norm, *values)
            assert geometry(result, *shapes) == tuple(expected), shape
            assert (name, macro(result, "LANES"), macro(result, "ITEMS")) == ("windows", *arguments[1:])
            tiles, run, halo = (argument(result, n, *shapes) for n in ("tiles", "run", "halo"))
            assert shape[0] * tiles == expected[0]
            assert halo == (inner * SIZE[dtype] % 16 != 0)
            # Every granule of a row begins in one of its tiles, however far before the row's first value that is.
            assert tiles * run >= inner + halo * (16 // SIZE[dtype] - 1)
            assert run * SIZE[dtype] % 16 == 0
            assert run * SIZE[dtype] // 16 + 2 * halo <= int(macro(result, "LANES"))


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("channels", [1, 7, 64, 255, 256, 768, 1000, 2048, 4096, 40000])
def test_l2norm_rows(recorder: Any, dtype: str, channels: int) -> None:
    kernel = launch("TrtconvL2Norm", [(5, channels), (channels,)], dtype, (0,))
    for outer in (1, 4, 5, 20):
        name, arguments, *expected = recorded(recorder.record_l2norm, ELEMENT_NUMBERS[dtype], outer, channels, 1, 0, 0)
        assert geometry(kernel, (outer, channels), (channels,)) == tuple(expected)
        if name == "packedRows":
            assert macro(kernel, "ITEMS") == arguments[2]
        elif name == "heldRows":
            assert (macro(kernel, "PACK"), macro(kernel, "ITEMS")) == arguments[1:]
            assert macro(kernel, "ROWS") == "1"
        else:
            assert name in ("heldColumns", "reloadedColumns")
            assert argument(kernel, "pack", (outer, channels), (channels,)) == (
                int(arguments[1]) if name == "heldColumns" else 0
            )


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_instance_norm_of_a_plane_to_a_block(recorder: Any, dtype: str) -> None:
    kernel = launch("TrtconvInstanceNorm", [(1, 24, 26, 26), (24,), (24,)], dtype, (0, 2, 3), epsilon=1e-5)
    for n, h, w in [
        (1, 26, 26),
        (4, 40, 25),
        (2, 3, 5),
        (1, 104, 104),
        (40, 17, 19),
        (300, 2, 2),
        (1, 23, 89),
        (1, 63, 65),
    ]:
        shapes = [(n, 24, h, w), (24,), (24,)]
        values = ELEMENT_NUMBERS[dtype], n * 24, 24, h * w, BLOCK
        name, arguments, *expected = recorded(recorder.record_instance_norm, *values)
        assert (name, arguments[1]) == ("onChipPlanes", "false")
        assert geometry(kernel, *shapes) == tuple(expected), (n, h, w)
        assert expected[2] <= MOST_SHARED


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_instance_norm_of_a_plane_to_a_warp(recorder: Any, dtype: str) -> None:
    for n, h, w in [(1, 1, 1), (2, 8, 8), (3, 12, 16), (1, 28, 32), (5, 3, 5)]:
        kernel = launch("TrtconvInstanceNorm", [(n, 6, h, w), (6,), (6,)], dtype, (0,), epsilon=1e-5)
        values = ELEMENT_NUMBERS[dtype], n * 6, 6, h * w, WARP
        name, arguments, *expected = recorded(recorder.record_instance_norm, *values)
        assert name == "warpPlanes"
        assert geometry(kernel, (n, 6, h, w), (6,), (6,)) == tuple(expected)
        assert (macro(kernel, "PACK"), macro(kernel, "ITEMS")) == arguments[1:]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("packs", [1, 2, 4, 8])
def test_instance_norm_of_a_plane_that_fills_a_warp(recorder: Any, dtype: str, packs: int) -> None:
    area = 32 * packs * (4 if dtype == "float32" else 8)
    for n in (1, 5):
        kernel = launch("TrtconvInstanceNorm", [(n, 6, area // 16, 16), (6,), (6,)], dtype, (0,), epsilon=1e-5)
        name, arguments, *expected = recorded(
            recorder.record_instance_norm, ELEMENT_NUMBERS[dtype], n * 6, 6, area, ANY_ROUTE
        )
        assert (name, arguments[1:]) == ("evenPlanes", (macro(kernel, "ITEMS"),))
        assert geometry(kernel, (n, 6, area // 16, 16), (6,), (6,)) == tuple(expected)


def test_an_empty_tensor_has_one_block() -> None:
    for op_type, shapes in (
        ("TrtconvL2Norm", [(0, 8, 4, 4), (8,)]),
        ("TrtconvReflectionPad", [(0, 8, 4, 4)]),
        ("TrtconvInstanceNorm", [(0, 8, 40, 40), (8,), (8,)]),
        ("TrtconvAdaptivePool", [(0, 8, 4, 4)]),
    ):
        kernel = launch(op_type, [(1, *shapes[0][1:]), *shapes[1:]], "float32", (0,))
        assert geometry(kernel, *shapes)[0] == 1
