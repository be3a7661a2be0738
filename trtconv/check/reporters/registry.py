"""The report formats, made from the modules of this folder: adding one is adding its file."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

from trtconv.check.reporters.reporter import Reporter

PACKAGE = "trtconv.check.reporters"


def discover_reporters() -> tuple[Reporter, ...]:
    """The `REPORTER` of every module of this package that has one, by name."""
    package = importlib.import_module(PACKAGE)
    names = [m.name for m in pkgutil.iter_modules(package.__path__)]
    modules = [importlib.import_module(f"{PACKAGE}.{name}") for name in names if name != Path(__file__).stem]
    reporters = [m.REPORTER for m in modules if isinstance(getattr(m, "REPORTER", None), Reporter)]
    return tuple(sorted(reporters, key=lambda r: r.name))


REPORTERS = discover_reporters()
