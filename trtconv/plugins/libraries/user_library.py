"""A library of the user's own plugins: their kernels with trtconv's adapters, from a folder that the user names.

The folder holds `plugin.py` (the description) and C++ or CUDA files that define, for each plugin, the object
`trtconv::FOLDER::kOp` of adapters/op.h. The header with attributes and fields and the list of ops are generated.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from pathlib import Path

from trtconv.core.artifacts import read_json, write_bytes, write_text
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.text.fields import Fields
from trtconv.plugins.description import PluginDescription
from trtconv.plugins.libraries.cpp_header import FILE_NAME as HEADER
from trtconv.plugins.libraries.cpp_header import header_text
from trtconv.plugins.libraries.library import compile_library, header_version, own_architectures, source_root
from trtconv.plugins.libraries.user_plugin import FILE_NAME, load_plugins

SOURCES = (".cu", ".cpp", ".cc", ".cxx")
HEADERS = (".cuh", ".h", ".hpp")


@dataclass(frozen=True)
class UserLibrary:
    """A library that was built from a folder of the user's; `sources` and `sha256` are hex digests."""

    path: Path
    tensorrt: str
    architectures: str
    sources: str
    sha256: str
    plugins: tuple[str, ...]


def build_user_library(
    source: Path, include_dir: Path, out_dir: Path | None = None, architectures: str | None = None
) -> UserLibrary:
    """Compile the plugins in `source` for the TensorRT whose headers are in `include_dir`.

    The library `lib<name of the folder>.so` and its record appear in `out_dir` (default: `source`/tensorrt-VERSION)
    when it is complete. Raises InvalidRequestError for a folder without description or sources, and what
    `library.build_library` raises.
    """
    plugins = load_plugins(source / FILE_NAME)
    files = _sources(source)
    version = header_version(include_dir)
    architecture_list = architectures or own_architectures()
    folder = out_dir or source / f"tensorrt-{version}"
    name = f"lib{source.resolve().name}.so"
    with private_temporary_folder("userplugins") as scratch:
        project = Path(scratch) / "project"
        write_project(project, plugins, files)
        built = compile_library(project, include_dir, Path(scratch) / "build", architecture_list, "libuser_plugins.so")
    names = tuple(p.op_type for p in plugins)
    digest = hashlib.sha256(built).hexdigest()
    library = UserLibrary(folder / name, version, architecture_list or "default", _digest(source), digest, names)
    write_bytes(library.path, built)
    record = {k: v for k, v in asdict(library).items() if k != "path"}
    write_text(record_path(library.path), json.dumps(record, indent=1) + "\n")
    return library


def record_path(library: Path) -> Path:
    """Where the record of a user's library lies: beside it."""
    return library.with_suffix(".json")


def read_record(library: Path) -> UserLibrary | None:
    """What `build_user_library` wrote beside this library; None when there is none or the library is another."""
    try:
        fields = Fields(read_json(record_path(library), "library record"))
        record = UserLibrary(
            library,
            fields.text("tensorrt"),
            fields.text("architectures"),
            fields.text("sources"),
            fields.text("sha256"),
            fields.texts("plugins"),
        )
        intact = hashlib.sha256(library.read_bytes()).hexdigest() == record.sha256
    except (OSError, InvalidRequestError, ValueError):
        return None
    return record if intact else None


def write_project(folder: Path, plugins: tuple[PluginDescription, ...], sources: tuple[Path, ...]) -> None:
    """The CMake project of a user's library: generated header, list of ops, and a CMakeLists.txt."""
    write_text(folder / "generated" / HEADER, header_text(plugins))
    write_text(folder / "generated" / "ops.cpp", ops_text(plugins))
    listed = "\n  ".join(f'"{path.resolve()}"' for path in sources)
    text = _CMAKE.replace("@SOURCES@", listed).replace("@ADAPTERS@", str(source_root() / "plugins_src"))
    write_text(folder / "CMakeLists.txt", text.replace("@OWN@", str(sources[0].resolve().parent)))


def ops_text(plugins: tuple[PluginDescription, ...]) -> str:
    """The C++ file that lists the ops for the adapters."""
    declared = "\n".join(f"namespace {p.folder}\n{{\nextern Op const kOp;\n}}" for p in plugins)
    listed = ", ".join(f"&{p.folder}::kOp" for p in plugins)
    return _OPS.replace("@DECLARED@", declared).replace("@LISTED@", listed)


def _sources(folder: Path) -> tuple[Path, ...]:
    source_files = tuple(sorted(p for p in folder.iterdir() if p.suffix in SOURCES and p.is_file()))
    if not source_files:
        raise InvalidRequestError(
            f"'{folder}' has no sources ({', '.join(SOURCES)})", hint="`trtconv help write-a-plugin` has an example"
        )
    return source_files


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.iterdir() if p.suffix in (*SOURCES, *HEADERS, ".py") and p.is_file()):
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


_OPS = """// Generated by `trtconv plugins build --source`.
#include "adapters/op.h"

namespace trtconv
{
@DECLARED@

Op const* const kOps[] = {@LISTED@};
int32_t const kOpCount = sizeof(kOps) / sizeof(kOps[0]);
} // namespace trtconv
"""

# As in plugins_src: nothing of libnvinfer is linked, the CUDA runtime is the library's own, all but the entry points
# is hidden, so that several libraries can be loaded side by side.
_CMAKE = """cmake_minimum_required(VERSION 3.22)
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES "75-real;80-real;86-real;89-real;90" CACHE STRING "CUDA architectures")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
project(user_plugins LANGUAGES CXX CUDA)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CUDA_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_VISIBILITY_PRESET hidden)
set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
find_package(CUDAToolkit REQUIRED)
set(ADAPTERS "@ADAPTERS@")
add_library(user_plugins SHARED
  @SOURCES@
  generated/ops.cpp
  ${ADAPTERS}/adapters/attributes.cpp ${ADAPTERS}/adapters/log.cpp ${ADAPTERS}/adapters/plugin_v2.cpp
  ${ADAPTERS}/adapters/plugin_v3.cpp ${ADAPTERS}/adapters/library.cpp)
target_include_directories(user_plugins PRIVATE "@OWN@" ${ADAPTERS} generated)
target_include_directories(user_plugins SYSTEM PRIVATE ${TENSORRT_INCLUDE_DIR})
target_link_libraries(user_plugins PRIVATE CUDA::cudart_static)
target_compile_options(user_plugins PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wno-deprecated-declarations>)
target_link_options(user_plugins PRIVATE -Wl,--exclude-libs,ALL -Wl,--no-undefined)
set_target_properties(user_plugins PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
"""
