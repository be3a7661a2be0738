"""Which plugin libraries a model or an engine needs: those that the user names, else the one that trtconv built.

A library is never loaded from a place that the user did not name and trtconv did not build into.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.artifacts import sha256_file
from trtconv.core.errors import UnsupportedError
from trtconv.plugins.description import NAMESPACE
from trtconv.plugins.library import find_library

if TYPE_CHECKING:
    import onnx


def used_plugins(model: onnx.ModelProto) -> tuple[str, ...]:
    """Op types of trtconv's own plugins in the model's main graph, sorted."""
    return tuple(sorted({n.op_type for n in model.graph.node if n.domain == NAMESPACE}))


def libraries_for_model(model: onnx.ModelProto, given: tuple[Path, ...], tensorrt: str) -> tuple[Path, ...]:
    """The libraries with which TensorRT of version `tensorrt` can build the model.

    Those given, else the one that `trtconv plugins build` made when the model has trtconv's plugin nodes. Raises
    UnsupportedError when it has and there is none.
    """
    names = used_plugins(model)
    if given or not names:
        return given
    major = int(tensorrt.split(".")[0])
    library = find_library(major)
    if library is None:
        raise UnsupportedError(
            f"the model needs the plugins {', '.join(names)}, and no library for TensorRT {major} was built here",
            hint="build it with `trtconv plugins build`, or rewrite with --plugins never",
        )
    return (library.path,)


def libraries_for_engine(recorded: Mapping[str, str], given: tuple[Path, ...], tensorrt: str) -> tuple[Path, ...]:
    """The libraries that an engine's manifest records (name to SHA-256): those given, else the one built here.

    The one built here is taken only when its bytes are those that the engine was built with.
    """
    if given or not recorded:
        return given
    library = find_library(int(tensorrt.split(".")[0]))
    if library is None or recorded.get(library.path.name) != sha256_file(library.path):
        return given
    return (library.path,)
