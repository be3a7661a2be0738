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
        path = require_file(library, "plugin library").resolve()
        again = is_loaded(path)
        opened = require_loadable(path, int(str(trt.__version__).split(".")[0]))
        registry = trt.get_plugin_registry()
        before = creators(registry)
        with logger.collect() as messages:
            handle = registry.load_library(str(path))
        # 8.6 says nothing at all of a library that it has (measured), and of names that it has.
        if again or (handle is not None and not any("already" in line.lower() for line in messages.errors)):
            continue
        _close(opened)
        raise _refused(str(trt.__version__), path, before, messages.errors)


def _refused(version: str, path: Path, registered: tuple[str, ...], lines: tuple[str, ...]) -> TrtconvError:
    """Why: the names that are registered and that the library's bytes hold, else what TensorRT said."""
    content = path.read_bytes()
    duplicates = [c for c in registered if f"\0{c.split('::')[1]}\0".encode() in content]
    if duplicates:
        return InvalidRequestError(
            f"the plugin library '{path}' has plugins whose names are registered already: {', '.join(duplicates[:8])}",
            details=lines[:5],
            hint="give one of the two libraries, or rename the plugins of one",
        )
    return TrtconvError(
        f"TensorRT {version} does not load the plugin library '{path}'",
        details=lines[:5],
        hint="was it built for this TensorRT's major version?",
    )


def is_loaded(path: Path) -> bool:
    """Whether this process has the library at `path` (the file itself, not a copy) in memory already."""
    try:
        _close(ctypes.CDLL(str(path), mode=os.RTLD_NOLOAD | os.RTLD_LAZY))
    except (OSError, AttributeError):  # not loaded; a system without RTLD_NOLOAD cannot say
        return False
    return True


def _close(library: ctypes.CDLL) -> None:
    """Give back one reference, so that a library that was refused is not taken for a registered one later."""
    from _ctypes import dlclose

    dlclose(library._handle)


def require_loadable(path: Path, major: int) -> ctypes.CDLL:
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
            _close(library)
            raise TrtconvError(
                f"'{path}' is not a plugin library for TensorRT {major}: it has no {symbol}",
                hint="build it for this TensorRT's major version",
            )
    return library


def creators(registry: Any) -> tuple[str, ...]:
    """`namespace::name::version` of every creator that is registered."""
    listed = registry.all_creators if hasattr(registry, "all_creators") else registry.plugin_creator_list
    return tuple(f"{c.plugin_namespace}::{c.name}::{c.plugin_version}" for c in listed)
