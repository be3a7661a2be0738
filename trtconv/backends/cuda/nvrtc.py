"""CUDA C++ to PTX by NVRTC, NVIDIA's compiler in a library: no toolkit and no GPU is needed.

The functions and their result codes are those of nvrtc.h of CUDA 12 and 13.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.core.embedded import KernelSource
from trtconv.core.errors import MissingDependencyError, TrtconvError

INSTALL = "pip install nvidia-cuda-nvrtc nvidia-cuda-runtime"
_MAJORS = (13, 12)


@dataclass(frozen=True)
class Nvrtc:
    """A loaded NVRTC. `version` as in (13, 0); `include` are the folders with cuda_fp16.h and what that includes."""

    library: Any
    path: str
    version: tuple[int, int]
    include: tuple[Path, ...]


@dataclass(frozen=True)
class CompiledKernel:
    """PTX and what made it. `architecture` is the virtual one, as in `compute_90`."""

    ptx: str
    architecture: str
    nvrtc: str

    @property
    def sha256(self) -> str:
        """Of the PTX text."""
        return hashlib.sha256(self.ptx.encode()).hexdigest()


def open_nvrtc(driver: str = "") -> Nvrtc:
    """The newest NVRTC whose PTX a driver for CUDA `driver` (as in `13.0`, empty: any) can read.

    Raises MissingDependencyError where there is none, or none with CUDA's headers.
    """
    newest = tuple(int(n) for n in driver.split(".")) if driver else (99, 0)
    reasons = []
    for name, roots in _candidates():
        try:
            # Some versions look for their second half by its name alone, which is found once it is loaded.
            for part in sorted(Path(name).parent.glob("libnvrtc-builtins.so.*")) if "/" in name else ():
                ctypes.CDLL(str(part))
            library = ctypes.CDLL(name)
        except OSError:
            continue
        version = _version(library)
        include = next((folders for root in roots if (folders := _include(root))), ())
        if version > newest:
            reasons.append(f"{name} is of CUDA {version[0]}.{version[1]}, newer than the driver, which is of {driver}")
        elif not include:
            reasons.append(f"the headers that belong to {name} (cuda_fp16.h) are not installed")
        else:
            return Nvrtc(library, name, version, include)
    fitting = f" (of CUDA {driver} at most: nvidia-cuda-nvrtc=={driver}.*)" if reasons and driver else ""
    raise MissingDependencyError(
        "plugin kernels are compiled by NVRTC, which is not usable here", hint=INSTALL + fitting, details=reasons
    )


def _candidates() -> Iterator[tuple[str, list[Path]]]:
    """Libraries by name, with the roots under which their headers may lie: wheels, then toolkits, then the loader's."""
    sites = [Path(p) / "nvidia" for p in sys.path if p]
    named = [os.environ.get(key, "") for key in ("CUDA_HOME", "CUDA_PATH")]
    toolkits = [Path(folder) for folder in (*named, "/usr/local/cuda") if folder]
    for major in _MAJORS:
        for site in sites:
            for folder in (f"cu{major}", "cuda_nvrtc"):
                file = site / folder / "lib" / f"libnvrtc.so.{major}"
                if file.is_file():
                    yield str(file), [site / f"cu{major}", site / "cuda_runtime", *toolkits]
        for toolkit in toolkits:
            file = toolkit / "lib64" / f"libnvrtc.so.{major}"
            if file.is_file():
                yield str(file), [toolkit]
        yield f"libnvrtc.so.{major}", [*(s / f"cu{major}" for s in sites), *toolkits]


def _include(root: Path) -> tuple[Path, ...]:
    folder = root / "include"
    if not (folder / "cuda_fp16.h").is_file():
        return ()
    return tuple(f for f in (folder, folder / "cccl", root.parent / "cuda_cccl" / "include") if f.is_dir())


def _version(library: Any) -> tuple[int, int]:
    major, minor = ctypes.c_int(), ctypes.c_int()
    library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor))
    return major.value, minor.value


def architecture_for(nvrtc: Nvrtc, compute_capability: str) -> str:
    """The newest virtual architecture that the compiler knows and a GPU of this compute capability runs."""
    count = ctypes.c_int()
    nvrtc.library.nvrtcGetNumSupportedArchs(ctypes.byref(count))
    archs = (ctypes.c_int * count.value)()
    nvrtc.library.nvrtcGetSupportedArchs(archs)
    capability = int(compute_capability.replace(".", ""))
    fitting = [n for n in archs if n <= capability]
    if not fitting:
        raise TrtconvError(
            f"{nvrtc.path} does not compile for compute capability {compute_capability}, but from {min(archs) / 10} on"
        )
    return f"compute_{max(fitting)}"


def compile_kernel(nvrtc: Nvrtc, source: KernelSource, architecture: str) -> CompiledKernel:
    """Compile one file to PTX. Raises TrtconvError with the compiler's words."""
    library = nvrtc.library
    program = ctypes.c_void_p()
    # The whole path, so that quoted headers are looked up beside the file and not in the working folder.
    name, text = str(source.path.resolve()), source.path.read_bytes()
    _check(library, library.nvrtcCreateProgram(ctypes.byref(program), text, name.encode(), 0, None, None))
    arguments = [f"--gpu-architecture={architecture}", "--std=c++17", "-default-device"]
    arguments += [f"--include-path={folder}" for folder in (*source.include, *nvrtc.include)]
    arguments += [f"--define-macro={key}={value}" for key, value in source.macros]
    try:
        options = (ctypes.c_char_p * len(arguments))(*(w.encode() for w in arguments))
        code = library.nvrtcCompileProgram(program, len(arguments), options)
        if code:
            log = _text(library, program, "ProgramLog")
            raise TrtconvError(
                f"the plugin kernel {source.path.name} does not compile for {architecture}",
                hint=f"by {nvrtc.path} with " + " ".join(arguments),
                details=log.splitlines()[:20],
            )
        version = ".".join(map(str, nvrtc.version))
        return CompiledKernel(_text(library, program, "PTX"), architecture, version)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(library: Any, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    _check(library, getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    buffer = ctypes.create_string_buffer(size.value)
    _check(library, getattr(library, f"nvrtcGet{what}")(program, buffer))
    return buffer.value.decode()


def _check(library: Any, code: int) -> None:
    if code:
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        raise TrtconvError(f"NVRTC says {library.nvrtcGetErrorString(code).decode()}")
