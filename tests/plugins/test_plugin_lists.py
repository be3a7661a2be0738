"""A plugin is one description, one folder of sources and its test: every list is made from them or compared here."""

import dataclasses
import re
from pathlib import Path

import pytest

import trtconv.plugins.described as package
from trtconv.core.config import toml_reader
from trtconv.core.errors import UnsupportedError
from trtconv.plugins.aot.registry import embedded_plugin
from trtconv.plugins.described.registry import PLUGINS, discover_plugins

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "plugins_src"
FOLDERS = {p.folder for p in PLUGINS}


def test_a_new_file_is_a_new_plugin(tmp_path, monkeypatch):
    (tmp_path / "swish.py").write_text(
        "import dataclasses\nfrom trtconv.plugins.described.l2norm import L2NORM as _L2\n"
        "SWISH = dataclasses.replace(_L2, op_type='TrtconvSwish', folder='swish')\ndel _L2\n"
    )
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    assert {p.folder for p in discover_plugins()} == FOLDERS | {"swish"}


def test_each_description_has_its_sources_and_the_other_way_round():
    assert {p.parent.name for p in SOURCES.glob("*/op.cpp")} == FOLDERS
    assert {p.parent.name for p in SOURCES.glob("*/kernel.cu")} == FOLDERS
    assert {p.stem for p in (SOURCES / "aot").glob("*.cu")} == {p.folder for p in PLUGINS if p.embeddable}


def test_cmake_finds_the_folders_itself():
    text = (SOURCES / "CMakeLists.txt").read_text()
    assert not [f for f in FOLDERS if re.search(rf"\b{f}\b", text)]
    assert "/*/op.cpp" in text


def test_the_op_table_names_every_plugin():
    names = {p.op_type.removeprefix("Trtconv") for p in PLUGINS}
    table = (SOURCES / "adapters" / "ops.cpp").read_text()
    assert set(re.findall(r"&k(\w+)", table)) == names
    assert set(re.findall(r"extern Op const k(\w+);", (SOURCES / "adapters" / "op.h").read_text())) == names


def test_the_wheel_carries_every_folder():
    files = toml_reader().loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    assert {f"share/trtconv/plugins_src/{folder}" for folder in FOLDERS} <= set(files)


@pytest.mark.parametrize("plugin", [p for p in PLUGINS if p.embeddable], ids=lambda p: p.folder)
def test_each_has_a_launch_for_engines_that_carry_it(plugin):
    assert embedded_plugin(plugin).op_type == plugin.op_type


def test_a_plugin_without_a_launch_is_an_error_and_no_traceback():
    with pytest.raises(UnsupportedError, match=r"there is no trtconv\.plugins\.aot\.swish"):
        embedded_plugin(dataclasses.replace(PLUGINS[0], folder="swish"))


@pytest.mark.parametrize("plugin", [p for p in PLUGINS if not p.embeddable], ids=lambda p: p.folder)
def test_a_plugin_without_one_kernel_is_an_error_too(plugin):
    with pytest.raises(UnsupportedError, match=f"{plugin.op_type} cannot go into an engine"):
        embedded_plugin(plugin)
