"""trtconv takes a PyTorch module to a TensorRT engine that was shown to compute the same thing.

    import trtconv

    result = trtconv.convert(model, inputs={"images": "float32[N,3,H,W]"}, dynamic={"N": "1:1:4", ...}, output="out")
    verdict = trtconv.check("out/model.engine")
    outputs = trtconv.load("out/model.engine")(images=array)
    trtconv.assert_equal(model, "out/model.engine")

- convert(model, *, inputs, dynamic, dims, output, **options) -> Conversion
- check(subject, *, against, **options) -> Verdict
- assert_equal(module, artifact, **options) -> Verdict, or raises DifferenceError
- load(path, *, plugins, foreign, trust, code) -> Session
- tune(model, *, data, metric, max_drop, inputs, dynamic, dims, output, **options) -> Tuned
- sweep(file, *, output, only, resume, retry, address, workers) -> Fleet

The command line has the same options under the same names: `trtconv convert --help`. `trtconv help python` prints the
page with every call. Whatever goes wrong is a TrtconvError, with `message`, `hint`, `where` and `exit_code`.
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trtconv.api.calls import assert_equal, check, convert, load
    from trtconv.api.results import Conversion, Verdict
    from trtconv.api.sweeps import Fleet, sweep
    from trtconv.api.tuning import Tuned, tune
    from trtconv.check.session import Session
    from trtconv.core.errors import (
        AccuracyError,
        CrashError,
        DifferenceError,
        EndlessError,
        InvalidRequestError,
        LimitError,
        MissingDependencyError,
        OutputBusyError,
        OverBudgetError,
        TrtconvError,
        UnsafeFolderError,
        UnsupportedError,
        UntrustedError,
    )
    from trtconv.core.trust.trust import EngineCode, Trust

__version__ = "0.1.0"
__all__ = [
    "AccuracyError", "Conversion", "CrashError", "DifferenceError", "EndlessError", "EngineCode", "Fleet",
    "InvalidRequestError", "LimitError", "MissingDependencyError", "OutputBusyError", "OverBudgetError", "Session",
    "TrtconvError", "Trust", "Tuned", "UnsafeFolderError", "UnsupportedError", "UntrustedError",
    "Verdict", "assert_equal", "check", "convert", "load", "sweep", "tune",
]  # fmt: skip
# Where each name of the door is defined.
_MODULES = {
    "trtconv.api.calls": ("assert_equal", "convert", "load"),
    "trtconv.api.results": ("Conversion", "Verdict"),
    "trtconv.api.sweeps": ("Fleet",),
    "trtconv.api.tuning": ("Tuned",),
    "trtconv.check.session": ("Session",),
    "trtconv.core.trust.trust": ("EngineCode", "Trust"),
    "trtconv.core.errors": tuple(name for name in __all__ if name.endswith("Error")),
}
# Calls that have the name of a package, and where they are defined.
_CALLS = {"check": "trtconv.api.calls", "sweep": "trtconv.api.sweeps", "tune": "trtconv.api.tuning"}


if not TYPE_CHECKING:  # with it any misspelt name would be typed

    def __getattr__(name: str) -> Any:
        """Load the public Python API on first use, so that `import trtconv` stays as light as the interpreter."""
        from importlib import import_module

        if name in _CALLS:
            return import_module(f"trtconv.{name}")
        for module, names in _MODULES.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module 'trtconv' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


class _CallableRoom(ModuleType):
    """A package whose name is a call of the door too: `trtconv.check`, `sweep` and `tune`."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """The call of that name."""
        from importlib import import_module

        name = self.__name__.rpartition(".")[2]
        return getattr(import_module(_CALLS[name]), name)(*args, **options)


class _Door(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        # The import system sets each subpackage on its parent.
        if name in _CALLS and type(value) is ModuleType:
            value.__class__ = _CallableRoom
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Door
