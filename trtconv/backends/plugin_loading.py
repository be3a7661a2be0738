"""Loading plugin libraries into TensorRT's registry, once per process."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import require_file
from trtconv.core.errors import TrtconvError

_ENTRY = {8: "getPluginCreators", 10: "getCreators"}


def load_plugins(trt: Any, logger: Any, libraries: tuple[Path, ...]) -> None:
    """Register TensorRT's own plugins and those of the libraries.

    Raises TrtconvError that says why a library does not load: TensorRT itself only returns None, both for a broken
    library and for one that is registered already.
    """
    if hasattr(trt, "init_libnvinfer_plugins"):
        trt.init_libnvinfer_plugins(logger, "")
    for library in libraries:
        registry = trt.get_plugin_registry()
        path = require_file(library, "plugin library").resolve()
        require_loadable(path, int(str(trt.__version__).split(".")[0]))
        before = set(creators(registry))
        with logger.collect() as messages:
            handle = registry.load_library(str(path))
        if handle is None and not _already_there(messages.errors, before):
            raise TrtconvError(
                f"TensorRT {trt.__version__} does not load the plugin library '{path}'",
                details=messages.errors[:5],
                hint="was it built for this TensorRT's major version?",
            )


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


def _already_there(errors: tuple[str, ...], before: set[str]) -> bool:
    return bool(before) and any("already" in line.lower() for line in errors)
