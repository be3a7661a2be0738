"""Loading plugin libraries into TensorRT's registry, once per process."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import require_file
from trtconv.core.errors import InvalidRequestError, TrtconvError

_ENTRY = {8: "getPluginCreators", 10: "getCreators"}


def load_plugins(trt: Any, logger: Any, libraries: tuple[Path, ...]) -> None:
    """Register TensorRT's own plugins and those of the libraries.

    Raises TrtconvError that says why a library does not load: TensorRT itself only returns None, both for a broken
    library and for one that is registered already; InvalidRequestError when another library has registered plugins of
    the same names, since an engine would get whichever came first.
    """
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(logger, "")
    for library in libraries:
        registry = trt.get_plugin_registry()
        path = require_file(library, "plugin library").resolve()
        again = is_loaded(path)
        require_loadable(path, int(str(trt.__version__).split(".")[0]))
        with logger.collect() as messages:
            handle = registry.load_library(str(path))
        taken = tuple(line for line in messages.errors if "already" in line.lower())
        if taken and not again:
            raise InvalidRequestError(
                f"the plugin library '{path}' has plugins whose names another library has registered",
                details=taken[:5],
                hint="give one of the two libraries, or rename the plugins of one",
            )
        if handle is None and not taken:
            raise TrtconvError(
                f"TensorRT {trt.__version__} does not load the plugin library '{path}'",
                details=messages.errors[:5],
                hint="was it built for this TensorRT's major version?",
            )


def is_loaded(path: Path) -> bool:
    """Whether this process has the library at `path` (the file itself, not a copy) in memory already."""
    try:
        ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY)
    except (OSError, AttributeError):  # not loaded; a system without RTLD_NOLOAD cannot say
        return False
    return True


def require_loadable(path: Path, major: int) -> None:
    """Raise TrtconvError with the linker's words, or naming the entry point that TensorRT looks for."""
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise TrtconvError(
            f"the plugin library '{path}' does not load: {error}",
            hint="is it built for this system, with its libraries?",
        ) from error
    entry = _ENTRY[8 if major < 10 else 10]
    for symbol in (entry, "setLoggerFinder"):
        if not hasattr(library, symbol) and not (major == 10 and hasattr(library, _ENTRY[8])):
            raise TrtconvError(
                f"'{path}' is no plugin library for TensorRT {major}: it has no {symbol}",
                hint="build it for this TensorRT's major version",
            )


def creators(registry: Any) -> tuple[str, ...]:
    """`namespace::name::version` of every creator that is registered."""
    listed = registry.all_creators if hasattr(registry, "all_creators") else registry.plugin_creator_list
    return tuple(f"{c.plugin_namespace}::{c.name}::{c.plugin_version}" for c in listed)
