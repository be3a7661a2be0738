"""Built libraries are recorded, found again by TensorRT's version, and left alone when they are stale or broken."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.conftest import headers_10
from trtconv.core.errors import InvalidRequestError, MissingDependencyError
from trtconv.plugins.libraries import library as store
from trtconv.plugins.libraries.finding import plugins_in_library


def put(folder: Path, version: str, sources: str, data: bytes = b"library") -> Path:
    import hashlib

    project = folder / f"tensorrt-{version}-{sources[:12]}"
    project.mkdir(parents=True)
    (project / store.LIBRARY_NAME).write_bytes(data)
    record = {
        "tensorrt": version,
        "architectures": "90",
        "sources": sources,
        "sha256": hashlib.sha256(data).hexdigest(),
        "plugins": ["TrtconvL2Norm"],
    }
    (project / store.RECORD_NAME).write_text(json.dumps(record))
    return project


def headers(folder: Path, text: str) -> Path:
    folder.mkdir()
    (folder / "NvInferRuntime.h").touch()
    (folder / "NvInferVersion.h").write_text(text)
    return folder


def test_the_version_is_read_from_both_kinds_of_headers(tmp_path: Path) -> None:
    old = "#define NV_TENSORRT_MAJOR 8 //!< x\n#define NV_TENSORRT_MINOR 6\n#define NV_TENSORRT_PATCH 1\n"
    new = (
        "#define TRT_MAJOR_ENTERPRISE 10\n#define TRT_MINOR_ENTERPRISE 14\n#define TRT_PATCH_ENTERPRISE 1\n"
        "#define NV_TENSORRT_MAJOR TRT_MAJOR_ENTERPRISE\n#define NV_TENSORRT_MINOR TRT_MINOR_ENTERPRISE\n"
        "#define NV_TENSORRT_PATCH TRT_PATCH_ENTERPRISE\n"
    )
    assert store.header_version(headers(tmp_path / "old", old)) == "8.6.1"
    assert store.header_version(headers(tmp_path / "new", new)) == "10.14.1"
    with pytest.raises(InvalidRequestError, match="no TensorRT headers"):
        store.header_version(tmp_path)


def test_a_library_is_found_by_major_version(tmp_path: Path) -> None:
    current = store.source_hash()
    for version in ("8.6.1", "10.14.1", "11.1.0"):
        put(tmp_path, version, current)
    library_path = [store.find_library(major, tmp_path) for major in (8, 9, 10, 11)]
    assert [f.tensorrt if f else None for f in library_path] == ["8.6.1", None, "10.14.1", "11.1.0"]


def test_a_library_of_10_serves_11_but_not_the_other_way(tmp_path: Path) -> None:
    put(tmp_path, "10.0.1", store.source_hash())
    library_path = store.find_library(11, tmp_path)
    assert library_path is not None
    assert library_path.tensorrt == "10.0.1"
    put(tmp_path / "other", "11.1.0", store.source_hash())
    assert store.find_library(10, tmp_path / "other") is None


def test_stale_and_broken_libraries_are_not_found(tmp_path: Path) -> None:
    put(tmp_path, "10.0.1", "0" * 64)
    broken = put(tmp_path, "10.14.1", store.source_hash())
    (broken / store.LIBRARY_NAME).write_bytes(b"something else")
    listed = store.list_libraries(tmp_path)
    assert [(entry.tensorrt, entry.current) for entry in listed] == [("10.0.1", False)]
    assert store.find_library(10, tmp_path) is None


def test_a_machine_without_a_compiler_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    include = headers(tmp_path / "include", "#define NV_TENSORRT_MAJOR 10\n")
    monkeypatch.setattr(store.shutil, "which", lambda *_, **__: None)
    with pytest.raises(MissingDependencyError, match="CMake"):
        store.build_library(include, tmp_path / "out")
    assert not store.list_libraries(tmp_path / "out")


def test_the_source_hash_follows_the_sources(tmp_path: Path) -> None:
    (tmp_path / "plugins_src" / "x").mkdir(parents=True)
    (tmp_path / "CMakeLists.txt").write_text("a")
    kernel = tmp_path / "plugins_src" / "x" / "kernel.cu"
    kernel.write_text("one")
    first = store.source_hash(tmp_path)
    kernel.write_text("two")
    assert store.source_hash(tmp_path) != first


@pytest.mark.slow
def test_build_record_and_find(tmp_path: Path) -> None:
    include_dir = headers_10()
    if include_dir is None:
        pytest.skip("needs TensorRT 10 headers: pip install kernel-lens, or set TENSORRT_INCLUDE_DIR_10")
    try:
        build_result = store.build_library(include_dir, tmp_path, architectures="90")
    except MissingDependencyError as error:
        pytest.skip(str(error))
    assert store.find_library(10, tmp_path) == build_result
    assert build_result.path.stat().st_size > 100_000


def test_a_name_is_found_behind_whatever_the_linker_put_before_it(tmp_path):
    """A float there may end in a byte that looks like a letter, and a longer string may end in the name."""
    library = tmp_path / "lib.so"
    library.write_bytes(b"\x7fELF\x37\x86\x35TrtconvL2Norm\0MyTrtconvInstanceNorm\0TrtconvReflectionPadding\0")
    names = ("TrtconvL2Norm", "TrtconvInstanceNorm", "TrtconvReflectionPad")
    assert plugins_in_library(library, names) == {"TrtconvL2Norm", "TrtconvInstanceNorm"}
