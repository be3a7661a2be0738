"""Stand-ins for TensorRT's libraries, so that the real Python bindings of 10 and 11 import where the libraries are not.

The bindings need eight C functions; these return null, so that enums, classes and signatures are real and a Builder
cannot be made.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_LIBRARIES = {
    "libnvinfer": (
        "createInferBuilder_INTERNAL",
        "createInferRuntime_INTERNAL",
        "createInferRefitter_INTERNAL",
        "getPluginRegistry",
        "getBuilderPluginRegistry",
    ),
    "libnvinfer_plugin": ("initLibNvInferPlugins",),
    "libnvonnxparser": (
        "createNvOnnxParser_INTERNAL",
        "createNvOnnxParserRefitter_INTERNAL",
        "getNvOnnxParserVersion",
    ),
}


def compiler() -> str | None:
    """A C compiler, or None."""
    return shutil.which("gcc") or shutil.which("cc")


def make_stub_libraries(folder: Path, major: int) -> Path:
    """Compile the stand-ins for one major version into `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, functions in _LIBRARIES.items():
        library = folder / f"{name}.so.{major}"
        source = "".join(f"void *{f}() {{ return 0; }}\n" for f in functions)
        command = [
            str(compiler()),
            "-shared",
            "-fPIC",
            "-x",
            "c",
            "-o",
            str(library),
            f"-Wl,-soname,{library.name}",
            "-",
        ]
        subprocess.run(command, input=source, text=True, check=True, capture_output=True)
    return folder
