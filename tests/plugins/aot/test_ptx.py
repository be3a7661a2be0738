"""The kernels' PTX: NVRTC's agrees with nvcc's on what a launch depends on, and the assembler takes it."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.plugins.nvrtc_wheels import nvrtc_site
from trtconv.backends.cuda import nvrtc as compiler
from trtconv.core.embedded import EmbeddedInput, EmbeddedKernel, KernelTarget
from trtconv.core.errors import MissingDependencyError, TrtconvError
from trtconv.core.sizes import Dim, evaluate
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import find_plugin

pytestmark = pytest.mark.slow

LAUNCHES: list[tuple[str, list[tuple[int, ...]], tuple[int, ...], dict[str, Any]]] = [
    ("TrtconvReflectionPad", [(2, 4, 32, 32)], (), {}),
    ("TrtconvReflectionPad", [(2, 4, 32, 32)], (0, 2, 3), {"pads": (3, 0, 1, 2)}),
    ("TrtconvAdaptivePool", [(2, 4, 32, 32)], (), {"output_size": (3, 3)}),
    ("TrtconvAdaptivePool", [(2, 4, 32, 32)], (0, 2, 3), {"output_size": (7, 5), "mode": "max"}),
    ("TrtconvL2Norm", [(2, 512, 40, 40), (512,)], (), {}),
    ("TrtconvL2Norm", [(2, 512, 40, 40), (512,)], (0, 2, 3), {"eps_mode": "max"}),
    ("TrtconvL2Norm", [(2, 256, 15, 15), (256,)], (0, 2, 3), {}),
    ("TrtconvL2Norm", [(4, 256), (256,)], (0,), {"eps_mode": "inside"}),
    ("TrtconvL2Norm", [(4, 255), (255,)], (0,), {}),
    ("TrtconvInstanceNorm", [(2, 8, 16, 16), (8,), (8,)], (0,), {"relu": "yes"}),
    ("TrtconvInstanceNorm", [(2, 8, 64, 64), (8,), (8,)], (0, 2, 3), {}),
]


@dataclass(frozen=True)
class Entry:
    """What a launch depends on."""

    parameters: tuple[str, ...]
    most_threads: str
    static_shared: int


def entry_of(ptx: str, name: str) -> Entry:
    match = re.search(rf"\.visible \.entry {name}\((.*?)\)\s*(.*?)\{{", ptx, re.DOTALL)
    assert match, ptx[:500]
    parameters = tuple(re.sub("[bs]", "u", s) for s in re.findall(r"\.param \.(\w\d+)", match[1]))
    bounds = re.search(r"\.maxntid (\d+)", match[2])
    shared = [int(n) for n in re.findall(r"\.shared [^;]*\[(\d+)\];", ptx)]
    return Entry(parameters, bounds[1] if bounds else "", sum(shared))


def kernel_of(
    op_type: str, shapes: list[tuple[int, ...]], dynamic: tuple[int, ...], dtype: str, attributes: dict[str, Any]
) -> EmbeddedKernel:
    plugin = embedded_plugin(find_plugin(op_type))
    inputs = [
        EmbeddedInput(dtype, tuple(Dim(i, a) if i == 0 and a in dynamic else d for a, d in enumerate(s)), s, s)
        for i, s in enumerate(shapes)
    ]
    return plugin.kernel(inputs, plugin.checked(attributes), KernelTarget("9.0", 132))


def tool(name: str) -> str:
    executable = shutil.which(name) or shutil.which(name, path="/usr/local/cuda/bin")
    if executable is None:
        nvcc = shutil.which("nvcc")
        places = [str(p) for p in Path("/usr/local").glob("cuda*/bin")] if nvcc else []
        executable = next((f for p in places if (f := shutil.which(name, path=p))), None)
    if executable is None:
        pytest.skip(f"needs {name}")
    return executable


@pytest.fixture(params=["13.0", "12.8"])
def nvrtc(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> compiler.Nvrtc:
    monkeypatch.setattr(sys, "path", [str(nvrtc_site(request.param)), *sys.path])
    result = compiler.open_nvrtc(driver=request.param)
    assert ".".join(map(str, result.version)) == request.param
    return result


def resources(ptx: str, architecture: str, folder: Path) -> tuple[int, int, int]:
    """Registers, static shared bytes and spilled bytes, by the assembler."""
    file = folder / "kernel.ptx"
    file.write_text(ptx)
    machine = architecture.replace("compute", "sm")
    command = [tool("ptxas"), "-v", f"-arch={machine}", "-o", folder / "kernel.cubin", file]
    process = subprocess.run(command, capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    registers = re.search(r"Used (\d+) registers", process.stderr)
    shared = re.search(r"(\d+) bytes smem", process.stderr)
    spilled = re.search(r"(\d+) bytes spill stores", process.stderr)
    assert registers, process.stderr
    return int(registers[1]), int(shared[1]) if shared else 0, int(spilled[1]) if spilled else 0


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize(("op_type", "shapes", "dynamic", "attributes"), LAUNCHES, ids=lambda v: str(v)[:24])
def test_nvrtc_and_nvcc_agree(
    nvrtc: compiler.Nvrtc,
    tmp_path: Path,
    op_type: str,
    shapes: list[tuple[int, ...]],
    dynamic: tuple[int, ...],
    attributes: dict[str, Any],
    dtype: str,
) -> None:
    kernel = kernel_of(op_type, shapes, dynamic, dtype, attributes)
    compiled = compiler.compile_kernel(nvrtc, kernel.source, "compute_90")
    own = entry_of(compiled.ptx, kernel.entry)
    count = 3 if op_type == "TrtconvInstanceNorm" else 2 if op_type == "TrtconvL2Norm" else 1
    assert own.parameters == ("u64",) * count + ("u32",) * len(kernel.arguments) + ("u64",)
    block = evaluate(kernel.block, shapes)
    assert block <= int(own.most_threads)

    root = kernel.source.path.parent
    command = [tool("nvcc"), "--ptx", "-std=c++17", "-arch=compute_90", f"-I{root / 'device'}", f"-I{root.parent}"]
    command += [f"-D{k}={v}" for k, v in kernel.source.macros]
    file = tmp_path / "nvcc.ptx"
    process = subprocess.run([*command, "-o", file, kernel.source.path], capture_output=True, text=True, check=False)
    assert process.returncode == 0, process.stderr
    assert entry_of(file.read_text(), kernel.entry) == own

    registers, shared, spilled = resources(compiled.ptx, "compute_90", tmp_path)
    assert shared + evaluate(kernel.shared, shapes) <= 48 * 1024
    assert registers * int(own.most_threads) <= 65536
    # The library's own kernel of a plane to a block of 1024 threads spills 20 bytes.
    assert spilled <= (32 if op_type == "TrtconvInstanceNorm" and own.most_threads == "1024" else 0)


@pytest.mark.parametrize("architecture", ["compute_75", "compute_80", "compute_100", "compute_120"])
def test_other_gpus(nvrtc: compiler.Nvrtc, tmp_path: Path, architecture: str) -> None:
    for op_type, shapes, dynamic, attributes in LAUNCHES[1::2]:
        kernel = kernel_of(op_type, shapes, dynamic, "float16", attributes)
        compiled = compiler.compile_kernel(nvrtc, kernel.source, architecture)
        registers, shared, _ = resources(compiled.ptx, architecture, tmp_path)
        assert registers <= 128
        assert shared + evaluate(kernel.shared, shapes) <= 48 * 1024


def test_the_same_source_gives_the_same_ptx(nvrtc: compiler.Nvrtc) -> None:
    kernel = kernel_of(*LAUNCHES[0][:3], "float32", {})
    first, second = (compiler.compile_kernel(nvrtc, kernel.source, "compute_90") for _ in range(2))
    assert first == second


def test_what_does_not_compile_is_told_in_the_compilers_words(nvrtc: compiler.Nvrtc) -> None:
    kernel = kernel_of(*LAUNCHES[0][:3], "float32", {})
    macros = tuple((k, "nonsense" if k == "TRTCONV_TOP" else v) for k, v in kernel.source.macros)
    source = compiler.KernelSource(kernel.source.path, kernel.source.include, macros)
    with pytest.raises(TrtconvError, match="does not compile for compute_90") as caught:
        compiler.compile_kernel(nvrtc, source, "compute_90")
    assert any("nonsense" in line for line in caught.value.details)


def test_gpus_without_an_architecture_of_their_own(nvrtc: compiler.Nvrtc) -> None:
    assert compiler.architecture_for(nvrtc, "9.0") == "compute_90"
    assert compiler.architecture_for(nvrtc, "99.0").startswith("compute_")
    with pytest.raises(TrtconvError, match=r"compute capability 3\.0"):
        compiler.architecture_for(nvrtc, "3.0")


def test_without_nvrtc_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_candidates", lambda: iter(()))
    with pytest.raises(MissingDependencyError) as caught:
        compiler.open_nvrtc()
    assert "pip install nvidia-cuda-nvrtc" in caught.value.hint
