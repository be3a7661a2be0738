"""The Python files that a module's code lies in, also those that were imported before anybody watched the file system.

A process that exports twice, such as a notebook or a test run, reads an imported file once. So what is recorded as
the sources of an export is also followed from the classes of the submodules through the modules that they name.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType
from typing import TYPE_CHECKING

from trtconv.core.files.real_paths import RealPaths
from trtconv.core.requests import ModuleSource
from trtconv.export.module.user_code import is_library

if TYPE_CHECKING:
    from torch import nn


def imported_files(module: nn.Module, source: ModuleSource) -> frozenset[str]:
    """Absolute paths of the user's imported files that the factory or any submodule's class can reach."""
    real = RealPaths()
    files = {real.of(str(path)) for path in source.files}
    places = {spec.rpartition(":")[0] for spec in (source.spec, source.sample or "")}
    open_names = {type(part).__module__ for part in module.modules()}
    open_names |= {n for n, m in list(sys.modules.items()) if n in places or _file_of(m, real) in files}
    visited: set[str] = set()
    reached: set[str] = set()
    while open_names:
        name = open_names.pop()
        visited.add(name)
        # A package's __init__ runs before its modules.
        parent = name.rpartition(".")[0]
        namespace = sys.modules.get(name)
        file = _file_of(namespace, real)
        if namespace is None or not file or is_library(file):
            continue
        reached.add(file)
        open_names |= {n for n in (parent, *_named_in(namespace)) if n and n not in visited}
    return frozenset(reached)


def _file_of(namespace: ModuleType | None, real: RealPaths) -> str:
    file = getattr(namespace, "__file__", None)
    return real.of(file) if isinstance(file, str) else ""


def _named_in(namespace: ModuleType) -> Iterator[str]:
    for value in list(vars(namespace).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str):
            yield name
