"""The compiled plugin library: building it for this machine, and finding it again by TensorRT version and sources."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from trtconv.core.artifacts import write_bytes, write_text
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, TrtconvError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.text.json_text import parse_json
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.libraries.cpp_header import header_text

LIBRARY_NAME = "libtrtconv_plugins.so"
RECORD_NAME = "library.json"
_PACKAGE = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class PluginLibrary:
    """A built library and what it was built for.

    `sources` and `sha256` are hex digests; `current` says whether the sources are those of this installation.
    """

    path: Path
    tensorrt: str
    architectures: str
    sources: str
    sha256: str
    plugins: tuple[str, ...]
    current: bool = True

    @property
    def tensorrt_major(self) -> int:
        """The major version of TensorRT whose headers it was built with: 8 loads V2 plugins, 10 and later V3."""
        return int(self.tensorrt.split(".")[0])


def source_root() -> Path:
    """The folder with CMakeLists.txt and plugins_src: of a checkout, or what the wheel put under share/trtconv."""
    for root in (_PACKAGE.parent, Path(sys.prefix) / "share" / "trtconv"):
        if (root / "plugins_src" / "CMakeLists.txt").is_file() and (root / "CMakeLists.txt").is_file():
            return root
    raise MissingDependencyError(
        "the sources of the plugins are not installed", hint="install trtconv from its wheel or from a checkout"
    )


def source_hash(root: Path | None = None) -> str:
    """SHA-256 over everything that goes into the library: kernels, adapters, CMake files and the generated header."""
    root = root or source_root()
    files = [root / "CMakeLists.txt", *sorted((root / "plugins_src").rglob("*"))]
    digest = hashlib.sha256(header_text().encode())
    for path in files:
        if path.is_file() and path.suffix in (".cu", ".cuh", ".cpp", ".h", ".txt"):
            digest.update(f"{path.parent.name}/{path.name}\0".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()


def default_folder() -> Path:
    """Where `build_library` puts libraries and the others look for them: the user's data folder for trtconv."""
    import platformdirs

    return Path(platformdirs.user_data_path("trtconv", appauthor=False)) / "plugins"


def header_version(include_dir: Path) -> str:
    """The version that NvInferVersion.h in `include_dir` states, as `major.minor.patch`.

    Raises InvalidRequestError when the folder has no TensorRT headers.
    """
    path = include_dir / "NvInferVersion.h"
    if not (include_dir / "NvInferRuntime.h").is_file() or not path.is_file():
        raise InvalidRequestError(
            f"'{include_dir}' has no TensorRT headers (NvInferRuntime.h, NvInferVersion.h)",
            hint="name the include folder of TensorRT, or of github.com/NVIDIA/TensorRT at the version's tag",
        )
    defines = dict(re.findall(r"#define\s+(\w+)\s+(\w+)", path.read_text(errors="replace")))

    def number(name: str) -> str:
        value = defines.get(name, "0")
        return str(defines.get(value, value))

    return ".".join(number(f"NV_TENSORRT_{part}") for part in ("MAJOR", "MINOR", "PATCH"))


def build_library(include_dir: Path, out_dir: Path | None = None, architectures: str | None = None) -> PluginLibrary:
    """Compile the plugins with CMake for the TensorRT whose headers are in `include_dir`.

    `architectures` is CMake's list, e.g. `90` or `80;90`; without it this machine's GPUs, or all from 7.5 on where
    there are none. The library appears in `out_dir` (default: `default_folder()`) when it is complete. Raises
    MissingDependencyError without CMake or nvcc, TrtconvError with the compiler's last lines when it fails.
    """
    from filelock import FileLock

    root = source_root()
    version = header_version(include_dir)
    sources = source_hash(root)
    architecture_list = architectures or own_architectures()
    folder = (out_dir or default_folder()) / f"tensorrt-{version}-{sources[:12]}"
    folder.mkdir(parents=True, exist_ok=True)
    with FileLock(folder / ".lock"), private_temporary_folder("plugins") as scratch:
        data = compile_library(root, include_dir, Path(scratch), architecture_list, LIBRARY_NAME)
        names = tuple(p.op_type for p in PLUGINS)
        digest = hashlib.sha256(data).hexdigest()
        library = PluginLibrary(folder / LIBRARY_NAME, version, architecture_list or "default", sources, digest, names)
        write_bytes(library.path, data)
        record = {k: v for k, v in asdict(library).items() if k not in ("path", "current")}
        write_text(folder / RECORD_NAME, json.dumps(record, indent=1) + "\n")
    return library


def own_architectures() -> str | None:
    """CMake's list of the compute capabilities of this machine's GPUs, as `80;90`; None without any."""
    tool = shutil.which("nvidia-smi")
    if tool is None:
        return None
    query = [tool, "--query-gpu=compute_cap", "--format=csv,noheader"]
    completed = subprocess.run(query, capture_output=True, text=True, check=False)
    capabilities = sorted(set(re.findall(r"^\s*(\d+)\.(\d+)\s*$", completed.stdout, re.MULTILINE)))
    return ";".join(major + minor for major, minor in capabilities) or None


def compile_library(root: Path, include_dir: Path, scratch: Path, architectures: str | None, name: str) -> bytes:
    """Build the CMake project `root` in `scratch`, and return the bytes of the library `name` that it makes.

    Raises MissingDependencyError without CMake or nvcc, TrtconvError with the compiler's last lines.
    """
    cmake = shutil.which("cmake")
    if cmake is None:
        raise MissingDependencyError("CMake is not installed", hint="pip install cmake")
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path="/usr/local/cuda/bin")
    if nvcc is None:
        raise MissingDependencyError("there is no CUDA compiler (nvcc)", hint="install the CUDA toolkit, 11.8 or later")
    configure = [cmake, "-S", str(root), "-B", str(scratch), f"-DTENSORRT_INCLUDE_DIR={include_dir.resolve()}"]
    configure += [f"-DCMAKE_CUDA_COMPILER={nvcc}", f"-DPython3_EXECUTABLE={sys.executable}"]
    configure.append(f"-DTRTCONV_PACKAGE_PARENT={_PACKAGE.parent}")
    if architectures:
        configure.append(f"-DCMAKE_CUDA_ARCHITECTURES={architectures}")
    _run(configure, "configure")
    target = name.removeprefix("lib").removesuffix(".so")
    _run([cmake, "--build", str(scratch), "--target", target, "--parallel"], "compile")
    return (scratch / name).read_bytes()


def _run(command: list[str], step: str) -> None:
    completed = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if completed.returncode != 0:
        raise TrtconvError(
            f"the plugin library did not {step}",
            hint="the compiler's last lines are above; the whole command: " + " ".join(command),
            details=completed.stdout.splitlines()[-20:],
        )


def list_libraries(folder: Path | None = None) -> tuple[PluginLibrary, ...]:
    """The libraries in `folder` (default: `default_folder()`), newest TensorRT last. Broken records are passed over."""
    root = folder or default_folder()
    current = source_hash()
    records = [_read(path, current) for path in sorted(root.glob(f"*/{RECORD_NAME}"))]
    libraries = [library for library in records if library is not None]
    return tuple(sorted(libraries, key=lambda library: [int(n) for n in library.tensorrt.split(".")]))


def _read(record: Path, current: str) -> PluginLibrary | None:
    path = record.parent / LIBRARY_NAME
    try:
        fields = parse_json(record.read_text())
        library = PluginLibrary(
            path,
            str(fields["tensorrt"]),
            str(fields["architectures"]),
            str(fields["sources"]),
            str(fields["sha256"]),
            tuple(fields["plugins"]),
            fields["sources"] == current,
        )
        intact = hashlib.sha256(path.read_bytes()).hexdigest() == library.sha256
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return library if intact else None


def _newer_loaders(built_with: int) -> tuple[int, ...]:
    return (11,) if built_with == 10 else ()


def find_library(tensorrt_major: int, folder: Path | None = None) -> PluginLibrary | None:
    """The library that a TensorRT of this major version loads, built from the present sources; None without one.

    TensorRT 8 needs one built with its own headers. From 10 on plugin interfaces carry their own version, and a library
    built with the headers of 10 registers in 11; one built with the same major version is preferred.
    """
    fitting = [
        library
        for library in list_libraries(folder)
        if library.current and tensorrt_major in (library.tensorrt_major, *_newer_loaders(library.tensorrt_major))
    ]
    fitting.sort(key=lambda library: library.tensorrt_major == tensorrt_major)
    return fitting[-1] if fitting else None
