"""`trtconv plugins build --source` on examples/user_plugin: what the library says to a probe and to TensorRT 11.4."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.plugins.conftest import Native, headers_10, headers_86
from trtconv.cli.commands.about.plugins import command
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.plugins.libraries.cpp_header import header_text
from trtconv.plugins.libraries.finding import plugins_in_library, why_not_loadable
from trtconv.plugins.libraries.user_library import build_user_library, ops_text, read_record, record_path
from trtconv.plugins.libraries.user_plugin import load_plugins

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "examples" / "user_plugin"


@pytest.fixture(scope="module", params=["v2", "v3"])
def user_library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Native:
    """The library, built through the command line from a copy of the example, and a probe with the same headers."""
    include = headers_86() if request.param == "v2" else headers_10()
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if include is None or nvcc is None or shutil.which("cmake") is None:
        pytest.skip("needs nvcc, cmake and TensorRT headers: TENSORRT_INCLUDE_DIR_86, TENSORRT_INCLUDE_DIR_10")
    folder = tmp_path_factory.mktemp(f"user_{request.param}")
    source = folder / "stn_sampler"
    shutil.copytree(FOLDER, source, ignore=shutil.ignore_patterns("tensorrt-*", "__pycache__"))
    words = ["build", "--source", str(source), "--include", str(include), "--architectures", "90"]
    result = CliRunner().invoke(command, words, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    (library,) = source.glob("tensorrt-*/libstn_sampler.so")
    assert str(library) in result.output
    assert "StnSampler" in result.output
    probe = folder / "probe"
    line = [nvcc, "-std=c++17", "-w", f"-I{ROOT / 'plugins_src'}", f"-I{include}"]
    line += [str(ROOT / "plugins_src" / "checks" / "plugin_probe.cpp"), "-o", str(probe), "-ldl"]
    subprocess.run(line, check=True, timeout=120)
    return Native(library, probe)


@pytest.mark.slow
def test_creator_fields_types_and_shapes(user_library: Native) -> None:
    assert user_library.ask("creators") == "StnSampler 1 trtconv align_corners:int:1"
    types = set(user_library.ask("types", "StnSampler", "2").splitlines())
    kinds = (0, 1, 7) if "user_v3" in str(user_library.library) else (0, 1)
    assert types == {f"{x} {theta} {x}" for x in kinds for theta in kinds}
    (sampler,) = load_plugins(FOLDER / "plugin.py")
    assert sampler.output_shapes([(2, 3, 5, 7), (2, 2, 3)], {}) == ((2, 3, 5, 7),)
    assert user_library.ask("shapes", "StnSampler", "align_corners=i:1", "--", "2x3x5x7", "2x2x3") == "2x3x5x7"
    refused = (("2x3x5x7", "1x2x3"), ("2x3x5x7", "2x3x3"), ("3x5x7", "3x2x3"))
    for x, theta in refused:
        assert user_library.ask("shapes", "StnSampler", "--", x, theta).startswith("refused")
        with pytest.raises(InvalidRequestError):
            sampler.output_shapes([tuple(map(int, s.split("x"))) for s in (x, theta)], {})
    assert user_library.ask("shapes", "StnSampler", "align_corners=i:2", "--", "2x3x5x7", "2x2x3").startswith("refused")


@pytest.mark.slow
def test_the_library_needs_nothing_and_is_found_only_where_it_was_named(
    user_library: Native, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    needed = subprocess.run(["readelf", "-d", user_library.library], capture_output=True, text=True, check=True).stdout
    assert not any(name in needed for name in ("nvinfer", "libcuda", "cudart"))
    assert plugins_in_library(user_library.library, ("StnSampler", "TrtconvL2Norm")) == {"StnSampler"}
    generation = 8 if "user_v2" in str(user_library.library) else 10
    assert why_not_loadable("StnSampler", (user_library.library,), generation) == ""
    assert "no library with StnSampler" in why_not_loadable("StnSampler", (), generation)
    listed = CliRunner().invoke(command, ["list", "--json"], catch_exceptions=False)
    assert "StnSampler" not in listed.output
    words = ["list", "--json", "--plugin", str(user_library.library), "--source", str(FOLDER)]
    data = json.loads(CliRunner().invoke(command, words, catch_exceptions=False).output)
    (entry,) = data["named"]
    assert entry["sha256"] == sha256_file(user_library.library)
    assert entry["plugins"] == ["StnSampler"]
    assert {"plugin": "StnSampler", "from": str(FOLDER / "plugin.py")} in data["described"]


@pytest.mark.slow
def test_a_record_of_another_library_is_not_believed(user_library: Native, tmp_path: Path) -> None:
    copy = tmp_path / user_library.library.name
    copy.write_bytes(user_library.library.read_bytes())
    assert read_record(copy) is None
    shutil.copy(record_path(user_library.library), record_path(copy))
    assert read_record(copy) is not None
    copy.write_bytes(b"something else")
    assert read_record(copy) is None


LOAD = """
import sys
import tensorrt_lean_bindings as trt
registry = trt.get_plugin_registry()
trt.Logger(trt.Logger.ERROR)
assert registry.load_library(sys.argv[1]) is not None
creator = registry.get_creator("StnSampler", "1", "trtconv")
print([(f.name, str(f.type), f.size) for f in creator.field_names])
"""


@pytest.mark.slow
def test_tensorrt_11_loads_it(user_library: Native, lean_site: str) -> None:
    if "user_v2" in str(user_library.library):
        pytest.skip("TensorRT 11 has no V2 interface")
    environment = {**os.environ, "PYTHONPATH": lean_site} if lean_site else dict(os.environ)
    line = [sys.executable, "-c", LOAD, str(user_library.library)]
    process = subprocess.run(line, capture_output=True, text=True, env=environment, check=False, timeout=120)
    assert process.returncode == 0, process.stderr[-2000:]
    assert process.stdout.strip() == "[('align_corners', 'PluginFieldType.INT32', 1)]"


def test_what_is_generated() -> None:
    plugins = load_plugins(FOLDER / "plugin.py")
    assert "{&stn_sampler::kOp}" in ops_text(plugins)
    header = header_text(plugins)
    assert "namespace stn_sampler" in header
    assert "TrtconvL2Norm" not in header


def test_a_folder_without_description_or_sources(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"plugin\.py"):
        build_user_library(tmp_path, tmp_path)
    shutil.copy(FOLDER / "plugin.py", tmp_path)
    with pytest.raises(InvalidRequestError, match="has no sources"):
        build_user_library(tmp_path, tmp_path)
    (tmp_path / "op.cpp").touch()
    with pytest.raises(InvalidRequestError, match="no TensorRT headers"):
        build_user_library(tmp_path, tmp_path)
