"""Where the native tests find a compiler, TensorRT headers and the lean runtime; each is skipped with its reason."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Native:
    """A plugin library built for the tests, and the probe that asks it questions."""

    library: Path
    probe: Path

    def ask(self, *words: str) -> str:
        command = [self.probe, self.library, *words]
        process = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
        return process.stdout.strip()


def headers_10() -> Path | None:
    """TensorRT 10's headers: a folder that the environment names, or those that the wheel kernel-lens carries."""
    if named := os.environ.get("TENSORRT_INCLUDE_DIR_10"):
        return Path(named)
    spec = importlib.util.find_spec("kernel_lens")
    places = [Path(p) / "include" / "tensorrt" for p in (spec.submodule_search_locations or ())] if spec else []
    return next((p for p in places if (p / "NvInferRuntime.h").is_file()), None)


def headers_86() -> Path | None:
    named = os.environ.get("TENSORRT_INCLUDE_DIR_86")
    return Path(named) if named else None


def build(include_dir: Path, folder: Path) -> Native:
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None or shutil.which("cmake") is None:
        pytest.skip("needs nvcc and cmake")
    configure = ["cmake", "-S", ROOT, "-B", folder, f"-DTENSORRT_INCLUDE_DIR={include_dir}", "-DTRTCONV_PROBE=ON"]
    configure += [f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DPython3_EXECUTABLE={sys.executable}"]
    configure += ["-DCMAKE_CUDA_ARCHITECTURES=90"]
    for command in (configure, ["cmake", "--build", folder, "--parallel", "2"]):
        process = subprocess.run(command, capture_output=True, text=True, check=False)
        assert process.returncode == 0, (process.stdout + process.stderr)[-3000:]
        assert "warning" not in process.stderr, process.stderr
    return Native(folder / "libtrtconv_plugins.so", folder / "plugin_probe")


@pytest.fixture(scope="session")
def native_v3(tmp_path_factory: pytest.TempPathFactory) -> Native:
    include_dir = headers_10()
    if include_dir is None:
        pytest.skip("needs TensorRT 10 headers: pip install kernel-lens, or set TENSORRT_INCLUDE_DIR_10")
    return build(include_dir, tmp_path_factory.mktemp("plugins_v3"))


@pytest.fixture(scope="session")
def native_v2(tmp_path_factory: pytest.TempPathFactory) -> Native:
    include_dir = headers_86()
    if include_dir is None:
        pytest.skip("needs TensorRT 8.6 headers: set TENSORRT_INCLUDE_DIR_86")
    return build(include_dir, tmp_path_factory.mktemp("plugins_v2"))


@pytest.fixture(params=["v2", "v3"])
def native(request: pytest.FixtureRequest) -> Native:
    build_result = request.getfixturevalue(f"native_{request.param}")
    assert isinstance(build_result, Native)
    return build_result


@pytest.fixture(scope="session")
def lean_site() -> str:
    """A PYTHONPATH that has TensorRT's lean bindings: the environment's TRTCONV_LEAN_SITE, or this Python's own."""
    if named := os.environ.get("TRTCONV_LEAN_SITE"):
        return named
    if importlib.util.find_spec("tensorrt_lean_bindings") is None:
        pytest.skip(
            "needs tensorrt-lean-cu13-libs and tensorrt-lean-cu13-bindings 11.4.0.106, installed with --no-deps "
            "--target in a folder that TRTCONV_LEAN_SITE names"
        )
    return ""
