"""Embedded plugins under the real Python bindings and the real plugin registries of TensorRT 10.16 and 11.4.

The builder is a stand-in (aot_host.cpp): it calls the plugins through the C++ interfaces by which TensorRT's builder
calls them, with symbolic dims of its own, and evaluates what it gets. Nothing is built and nothing runs on a GPU.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.backends.stub_libraries import make_stub_libraries
from tests.backends.test_real_bindings import VERSIONS, bindings
from tests.plugins.cases import EMBEDDED, Case
from tests.plugins.nvrtc_wheels import nvrtc_site
from tests.wheels import wheel_folder
from trtconv.core.embedded import EmbeddedInput, KernelTarget
from trtconv.core.sizes import Dim, Size, evaluate
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import PLUGINS, find_plugin

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
NUMBERS = {"float32": 0, "float16": 1, "bfloat16": 7, "int32": 3}
Ask = Callable[..., dict[str, Any]]


def headers(major: int) -> Path:
    """TensorRT's headers, that of Python plugins among them, which only the repository's include folder has."""
    name = f"TENSORRT_INCLUDE_DIR_{major}"
    folder = Path(os.environ.get(name, ""))
    if not (folder / "impl" / "NvInferPythonPlugin.h").is_file():
        pytest.skip(f"needs the include folder of github.com/NVIDIA/TensorRT, v{major}, with impl/: set {name}")
    return folder


def cuda_include() -> Path:
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    folders = [Path("/usr/local/cuda/include"), *(p.parent.parent / "include" for p in [Path(nvcc).resolve()] if nvcc)]
    for folder in [*folders, *Path("/usr/local").glob("cuda-*/include")]:
        if (folder / "cuda_runtime_api.h").is_file():
            return folder
    pytest.skip("needs CUDA's headers")


def lean_library(version: str) -> Path:
    """The lean runtime, whose plugin registry is the real one: the smallest of TensorRT's libraries on PyPI."""
    target = wheel_folder(f"tensorrt-lean-{version}", f"tensorrt-lean-cu13-libs=={version}")
    return next(target.glob("tensorrt_lean_libs/libnvinfer_lean.so.*"))


@pytest.fixture(scope="module", params=VERSIONS.items(), ids=lambda v: v[0])
def child(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[subprocess.Popen[str]]:
    version, major = request.param
    folder = make_stub_libraries(tmp_path_factory.mktemp("host"), major)
    library = folder / f"libnvinfer.so.{major}"
    command = ["g++", "-std=c++17", "-O1", "-shared", "-fPIC", "-Wno-deprecated-declarations", f"-I{headers(major)}"]
    command += [f"-I{cuda_include()}", str(Path(__file__).parents[1] / "aot_host.cpp"), "-o", str(library), "-ldl"]
    command.append(f"-Wl,-soname,{library.name}")
    run_result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run_result.returncode == 0, run_result.stderr[-3000:]
    path = [str(bindings(version)), str(ROOT), str(nvrtc_site("13.0"))]
    environment = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "LEAN_LIBRARY": str(lean_library(version)),
        "PYTHONPATH": ":".join(path),
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.plugins.aot_child", library.name],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
        cwd=folder,
    )
    yield process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(timeout=30)


@pytest.fixture(scope="module")
def ask(child: subprocess.Popen[str]) -> Ask:
    def put(lines: list[str], **more: Any) -> dict[str, Any]:
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(json.dumps({"ask": "\n".join(lines) + "\n", **more}) + "\n")
        child.stdin.flush()
        while line := child.stdout.readline():
            if line.startswith("{"):
                answer: dict[str, Any] = json.loads(line)
                return answer
        raise AssertionError("the child ended")

    return put


def shape_text(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def request_lines(
    case: Case, dtype: str, dynamic: tuple[int, ...], points: list[list[tuple[int, ...]]], **wrong: Any
) -> list[str]:
    plugin = find_plugin(case.op_type)
    lines = [f"plugin {case.op_type}"]
    for name, value in {**plugin.checked_attributes(case.attributes), **wrong}.items():
        kind = "f" if isinstance(value, float) else "I" if isinstance(value, tuple) else "i"
        numbers = value if isinstance(value, tuple) else (value,)
        lines.append(f"attribute {name} {kind} " + " ".join(map(str, numbers)))
    for number, shape in enumerate(case.shapes):
        dims = tuple(-1 if number == 0 and a in dynamic else d for a, d in enumerate(shape))
        high = tuple(9 * d if d < 0 else max(shape[a], 1) * (3 if dims[a] < 0 else 1) for a, d in enumerate(dims))
        lines.append(f"input {NUMBERS[dtype]} {shape_text(dims)} {shape_text(shape)} {shape_text(high)}")
    lines += ["at " + " ".join(shape_text(s) for s in point) for point in points]
    return lines


def dynamic_axes(case: Case) -> tuple[int, ...]:
    rank = len(case.shapes[0])
    fixed = case.attributes.get("axis", 1) if case.op_type == "TrtconvL2Norm" else 1
    fixed = rank - 1 if case.op_type == "TrtconvLayerNorm" else fixed
    return tuple(
        a for a in range(rank) if a != fixed or case.op_type in ("TrtconvReflectionPad", "TrtconvAdaptivePool")
    )


def points_of(case: Case) -> list[list[tuple[int, ...]]]:
    """The case's own shapes, and larger ones along every axis that may change."""
    axes = dynamic_axes(case)
    first = [tuple(d + step * (a + 1) if a in axes else d for a, d in enumerate(case.shapes[0])) for step in (0, 1, 5)]
    return [[shape, *case.shapes[1:]] for shape in first]


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("case", EMBEDDED, ids=str)
def test_shapes_types_and_launches(ask: Ask, case: Case, dtype: str) -> None:
    points = points_of(case)
    answer = ask(request_lines(case, dtype, dynamic_axes(case), points))
    assert "text" in answer, answer
    head, types, *rest = answer["text"].splitlines()
    tensors = len(case.shapes) + 1
    assert types == "types" + f" {NUMBERS[dtype]}" * tensors
    plugin = embedded_plugin(find_plugin(case.op_type))
    inputs = []
    for number, shape in enumerate(case.shapes):
        dims: tuple[Size, ...] = tuple(
            Dim(number, a) if number == 0 and a in dynamic_axes(case) else d for a, d in enumerate(shape)
        )
        high = tuple(3 * max(d, 1) if not isinstance(dims[a], int) else d for a, d in enumerate(shape))
        inputs.append(EmbeddedInput(dtype, dims, shape, high))
    attributes = plugin.checked(case.attributes)
    kernel = plugin.kernel(inputs, attributes, KernelTarget("9.0", 132))
    assert head == f"kernel {kernel.entry}"
    for line, shapes in zip(rest, points, strict=True):
        expected = find_plugin(case.op_type).output_shapes(shapes, case.attributes)[0]
        grid, block, shared = (evaluate(s, shapes) for s in (kernel.grid, kernel.block, kernel.shared))
        numbers = " ".join(str(evaluate(s, shapes)) for _, s in kernel.arguments)
        assert line == f"at {shape_text(expected)} launch {grid} 1 1 {block} 1 1 {shared} arguments {numbers}"
    # Inputs, then the 32-bit arguments, then the output.
    entry = re.search(rf"\.visible \.entry {kernel.entry}\((.*?)\)", answer["ptx"], re.DOTALL)
    assert entry, answer["ptx"][:500]
    sizes = re.findall(r"\.param \.(?:u|b)(\d+)", entry[1])
    assert sizes == ["64"] * len(case.shapes) + ["32"] * len(kernel.arguments) + ["64"]
    fact = answer["facts"][kernel.entry]
    assert (fact["architecture"], fact["nvrtc"]) == ("compute_90", "13.0")
    assert len(fact["ptx_sha256"]) == 64


def test_creators_are_those_of_the_descriptions(ask: Ask) -> None:
    answer = ask(request_lines(EMBEDDED[0], "float32", (), points_of(EMBEDDED[0])[:1]))
    names = {"int": "INT32", "float": "FLOAT32", "ints": "INT32"}
    expected = [
        [p.op_type, p.version, [[a.name, f"PluginFieldType.{names[a.kind]}"] for a in p.attributes]]
        for p in PLUGINS
        if p.embeddable
    ]
    assert sorted(answer["creators"]) == sorted(expected)


def test_a_fixed_network_gets_a_kernel_with_its_sizes_in_it(ask: Ask) -> None:
    case = Case("TrtconvReflectionPad", ((1, 3, 30, 50),), {"pads": (1, 2, 3, 4)})
    fixed = ask(request_lines(case, "float16", (), [[case.shapes[0]]]))
    free = ask(request_lines(case, "float16", (0, 2, 3), [[case.shapes[0]]]))
    assert fixed["text"].splitlines()[2] == free["text"].splitlines()[2]
    assert "rem.u32" in free["ptx"] or "div.u32" in free["ptx"]
    assert "div.u32" not in fixed["ptx"], "a divisor that is known is a multiplication"


def test_older_gpus_get_their_own_architecture(ask: Ask) -> None:
    lines = request_lines(EMBEDDED[0], "float32", (0,), points_of(EMBEDDED[0])[:1])
    for capability, expected in (("7.5", "compute_75"), ("8.6", "compute_86"), ("12.1", "compute_121")):
        answer = ask(lines, compute_capability=capability)
        assert {f["architecture"] for f in answer["facts"].values()} == {expected}
        assert f".target sm_{expected.removeprefix('compute_')}" in answer["ptx"]


REFUSED = [
    (Case("TrtconvReflectionPad", ((1, 3, 8, 8),)), "float32", {"pads": (1, 2, 3)}, "pads takes 4 ints"),
    (Case("TrtconvReflectionPad", ((1, 3, 8, 8),)), "float32", {"pads": (1, 2, 3, 8)}, "a pad of 8 needs an axis"),
    (Case("TrtconvL2Norm", ((1, 3, 8, 8), (4,))), "float32", {}, "scale has shape (4,), wanted [3]"),
    (Case("TrtconvL2Norm", ((1, 3, 8, 8), (3,))), "float32", {"eps_mode": 5}, "eps_mode = 5 is outside"),
    (Case("TrtconvAdaptivePool", ((1, 3, 8, 8),)), "int32", {}, "takes float32, float16, bfloat16, not INT32"),
    (Case("TrtconvInstanceNorm", ((1, 3, 300, 300), (3,), (3,))), "float32", {}, "cannot lie in the engine"),
]


@pytest.mark.parametrize(("case", "dtype", "wrong", "words"), REFUSED, ids=lambda v: str(v)[:40])
def test_a_refusal_reaches_the_user_in_our_words(
    ask: Ask, case: Case, dtype: str, wrong: dict[str, Any], words: str
) -> None:
    answer = ask(request_lines(case, dtype, (), [list(case.shapes)], **wrong))
    assert words in answer["message"], answer
    assert answer["error"] in ("InvalidRequestError", "UnsupportedError")


def test_an_nvrtc_that_is_newer_than_the_driver_is_refused(ask: Ask) -> None:
    answer = ask(request_lines(EMBEDDED[0], "float32", (), points_of(EMBEDDED[0])[:1]), driver="12.1")
    assert answer["error"] == "MissingDependencyError"
    assert "nvidia-cuda-nvrtc" in answer["hint"]
