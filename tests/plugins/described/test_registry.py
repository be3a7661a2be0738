"""The tuple of plugins, the modules, the source folders, the C++ list and the docs page are the same plugins."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from trtconv.plugins import docs_page
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import PluginDescription
from trtconv.plugins.libraries.cpp_header import header_text

ROOT = Path(__file__).resolve().parents[3]


def test_every_module_with_a_description_is_in_the_tuple() -> None:
    names = set()
    for path in (ROOT / "trtconv" / "plugins" / "described").glob("*.py"):
        module = importlib.import_module(f"trtconv.plugins.described.{path.stem}")
        names |= {v.op_type for v in vars(module).values() if isinstance(v, PluginDescription)}
    assert names == {p.op_type for p in PLUGINS}


def test_every_plugin_has_its_sources_and_no_folder_is_left_over() -> None:
    folders = {p.parent.name for p in (ROOT / "plugins_src").glob("*/kernel.cu")}
    assert folders == {p.folder for p in PLUGINS}
    for plugin in PLUGINS:
        assert (ROOT / "plugins_src" / plugin.folder / "op.cpp").is_file()


def test_the_cpp_list_names_the_same_plugins_in_order() -> None:
    ops = (ROOT / "plugins_src" / "adapters" / "ops.cpp").read_text()
    names = re.findall(r"&k(\w+)", ops)
    assert [f"Trtconv{n}" for n in names] == [p.op_type for p in PLUGINS]


def test_the_docs_page_is_up_to_date() -> None:
    committed = (ROOT / "docs" / "reference" / "plugins.md").read_text()
    assert committed == docs_page.page_text(), "run python -m trtconv.plugins.docs_page docs/reference/plugins.md"


def test_the_header_has_every_attribute_with_its_default() -> None:
    text = header_text()
    for plugin in PLUGINS:
        assert f"namespace {plugin.folder}" in text
        for attribute in plugin.attributes:
            assert re.search(rf"\b{attribute.name}(\[\d+\])?\{{", text), attribute.name
            assert f'"{attribute.name}"' in text


def test_kernels_know_no_tensorrt() -> None:
    for folder in (*(p.folder for p in PLUGINS), "common"):
        for path in (ROOT / "plugins_src" / folder).iterdir():
            if path.name != "op.cpp":
                assert "NvInfer" not in path.read_text(), path
                assert "nvinfer1" not in path.read_text(), path
