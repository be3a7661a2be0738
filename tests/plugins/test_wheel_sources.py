"""The wheel carries every source that the plugin libraries are made of, and what a user's library needs of them."""

from __future__ import annotations

import re
from pathlib import Path

from trtconv.core.config import toml_reader
from trtconv.plugins import measured
from trtconv.plugins.libraries.user_library import _CMAKE

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (".cu", ".cuh", ".cpp", ".h", ".txt")


def carried() -> dict[str, set[str]]:
    """Folder under share/trtconv -> names of the files that the wheel puts there."""
    data = toml_reader().loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["data-files"]
    return {
        target.removeprefix("share/trtconv").lstrip("/"): {p.name for g in globs for p in ROOT.glob(g)}
        for target, globs in data.items()
    }


def test_every_source_is_carried_to_its_place() -> None:
    files = carried()
    expected = [ROOT / "CMakeLists.txt", *(p for p in (ROOT / "plugins_src").rglob("*") if p.suffix in SOURCES)]
    missing = [str(p) for p in expected if p.name not in files.get(str(p.parent.relative_to(ROOT)).strip("."), set())]
    assert not missing


def test_a_users_library_finds_the_adapters_there() -> None:
    files = carried()
    named = re.findall(r"\$\{ADAPTERS\}/(\w+)/(\w+\.\w+)", _CMAKE)
    assert len(named) == 5
    assert all(name in files[f"plugins_src/{folder}"] for folder, name in named)


def test_the_measurements_are_package_data() -> None:
    data = toml_reader().loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    patterns = data["package-data"]["trtconv"]
    assert any((ROOT / "trtconv" / "plugins" / measured.FILE_NAME) in set((ROOT / "trtconv").glob(p)) for p in patterns)
