"""Which plugin libraries a model or an engine needs: those that the user names, and the one that trtconv built.

A library is never loaded from a place that the user did not name and trtconv did not build into.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import require_file
from trtconv.core.errors import UnsupportedError
from trtconv.core.files.digest import sha256_file
from trtconv.core.model.bodies import walk_nodes
from trtconv.plugins.described.registry import PLUGINS
from trtconv.plugins.description import NAMESPACE
from trtconv.plugins.libraries.library import find_library

if TYPE_CHECKING:
    import onnx


def used_plugins(model: onnx.ModelProto) -> tuple[str, ...]:
    """Op types of the nodes of domain `trtconv` in the model and in the bodies of its nodes, sorted."""
    return tuple(sorted({n.op_type for n in walk_nodes(model.graph.node) if n.domain == NAMESPACE}))


def plugins_in_library(library: Path, names: Iterable[str]) -> frozenset[str]:
    """Those of the op types that a library holds: their names stand in it as C strings. Nothing is loaded.

    Before a string may lie whatever the linker put there: other constants, or the beginning of a longer string that
    ends alike.
    """
    content = require_file(library, "plugin library").read_bytes()
    return frozenset(n for n in names if f"{n}\0".encode() in content)


def libraries_for_model(model: onnx.ModelProto, named_libraries: tuple[Path, ...], tensorrt: str) -> tuple[Path, ...]:
    """The libraries with which TensorRT of version `tensorrt` can build the model.

    Those given, and the one that `trtconv plugins build` made where the model has trtconv's plugin nodes that none of
    the given ones holds. Raises UnsupportedError naming the plugins that are then still missing.
    """
    names = used_plugins(model)
    missing = set(names).difference(*(plugins_in_library(path, names) for path in named_libraries))
    if not missing:
        return named_libraries
    major = int(tensorrt.split(".")[0])
    own = sorted(missing & {p.op_type for p in PLUGINS})
    foreign = sorted(missing.difference(own))
    if foreign:
        raise UnsupportedError(
            f"the model needs the plugins {', '.join(foreign)}, and no library that was named has them",
            hint="name it with --plugin LIB; `trtconv help write-a-plugin` says how to build one of your own",
        )
    library = find_library(major)
    if library is None:
        raise UnsupportedError(
            f"the model needs the plugins {', '.join(own)}, and no library for TensorRT {major} was built here",
            hint="build it with `trtconv plugins build`, or rewrite with --plugins never",
        )
    return (*named_libraries, library.path)


def libraries_for_engine(
    recorded: Mapping[str, str], named_libraries: tuple[Path, ...], tensorrt: str
) -> tuple[Path, ...]:
    """The libraries that an engine's manifest records (name to SHA-256): those given, and the one built here.

    The one built here is taken only when its bytes are those that the engine was built with.
    """
    if not set(recorded).difference(p.name for p in named_libraries):
        return named_libraries
    library = find_library(int(tensorrt.split(".")[0]))
    if library is None or recorded.get(library.path.name) != sha256_file(library.path):
        return named_libraries
    return (*named_libraries, library.path)


def why_not_loadable(op_type: str, named_libraries: Sequence[Path], generation: int) -> str:
    """Why a TensorRT of this major version would find no library with the plugin; empty where there is one."""
    if any(plugins_in_library(path, (op_type,)) for path in named_libraries):
        return ""
    library = find_library(generation)
    if library is not None and op_type in library.plugins:
        return ""
    return f"no library with {op_type} for TensorRT {generation} was built here (`trtconv plugins build`) or named"
