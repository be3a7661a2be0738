"""What a process is set to that user code changes: folder, NumPy's floating point errors, torch's device and autocast.

Scientific code says `np.seterr(all="raise")`, and scripts `os.chdir(os.path.dirname(__file__))`. User code runs as it
set them; all that trtconv does itself runs with NumPy's defaults, in the folder in which its paths were named.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from trtconv.core.files.current_folder import current_folder

# numpy.seterr: "The default is to warn of overflow, division by zero and invalid values".
DEFAULTS: dict[str, Any] = {"divide": "warn", "over": "warn", "under": "ignore", "invalid": "warn"}
AUTOCASTING = ("cpu", "cuda")


@dataclass(frozen=True)
class ProcessSettings:
    """The current folder, None where it was removed, and what `numpy.geterr` gives."""

    folder: str | None
    float_errors: tuple[tuple[str, Any], ...]

    @classmethod
    def now(cls) -> ProcessSettings:
        """As the process is set."""
        return cls(current_folder(), tuple(np.geterr().items()))

    def apply(self) -> None:
        """Set the process so."""
        if self.folder is not None and self.folder != current_folder():
            os.chdir(self.folder)
        np.seterr(**dict(self.float_errors))


@dataclass
class _Remembered:
    """Of who called trtconv, and of the user code that was loaded last; None where that is what trtconv runs with."""

    caller: ProcessSettings | None = None
    user: ProcessSettings | None = None


_remembered = _Remembered()


@contextmanager
def own_settings() -> Iterator[None]:
    """Within a caller's process: what it set is for its module, and comes back in the end.

    torch.autocast of the caller's is off, with a warning: it is no part of the module, and no file would hold it. New
    tensors lie on the CPU, where a module is converted, whatever torch.set_default_device said.
    """
    before, outer = ProcessSettings.now(), _remembered.caller
    with ExitStack() as stack:
        stack.callback(before.apply)
        if dict(before.float_errors) != DEFAULTS:
            _remembered.caller = _remembered.user = before
            stack.callback(setattr, _remembered, "user", None)
            stack.callback(setattr, _remembered, "caller", outer)
        np.seterr(**DEFAULTS)
        stack.enter_context(_without_autocast())
        stack.enter_context(_with_denormals())
        torch: Any = sys.modules.get("torch")
        if torch is not None and torch.get_default_device().type != "cpu":
            stack.enter_context(torch.device("cpu"))
        yield


@contextmanager
def _without_autocast() -> Iterator[None]:
    torch: Any = sys.modules.get("torch")
    devices = [d for d in AUTOCASTING if torch is not None and torch.is_autocast_enabled(d)]
    for device in devices:
        torch.set_autocast_enabled(device, False)
    if devices:
        warnings.warn(
            "torch.autocast is on around this call: the module is taken without it. What it is to compute in another "
            "type belongs into its forward",
            stacklevel=2,
        )
    try:
        yield
    finally:
        for device in devices:
            torch.set_autocast_enabled(device, True)


@contextmanager
def _with_denormals() -> Iterator[None]:
    """Denormal numbers are not zero, as they are not in a file; torch.set_flush_denormal of the caller's comes back."""
    torch: Any = sys.modules.get("torch")
    smallest = 2.0**-149
    flushed = torch is not None and float(torch.full((1,), smallest, dtype=torch.float32, device="cpu") * 1) == 0.0
    if flushed:
        torch.set_flush_denormal(False)
    try:
        yield
    finally:
        if flushed:
            torch.set_flush_denormal(True)


@contextmanager
def settings_put_back() -> Iterator[None]:
    """Around the import of user code and the call of a factory: what it sets is kept for the module's runs.

    But torch.set_default_device: a module is converted on the CPU, and the tensors that it makes belong beside it.
    """
    import torch

    before, device = ProcessSettings.now(), torch.get_default_device()
    if _remembered.caller is not None:
        _remembered.caller.apply()
    try:
        yield
    finally:
        after = ProcessSettings.now()
        _remembered.user = after if after != before else None
        before.apply()
        if torch.get_default_device() != device:
            torch.set_default_device(device)


@contextmanager
def settings_of_user() -> Iterator[None]:
    """Around a run of the module."""
    user = _remembered.user
    if user is None:
        yield
        return
    before = ProcessSettings.now()
    user.apply()
    try:
        yield
    finally:
        before.apply()
