"""Which CUDA library carries memory, streams, events and the context: decided here and nowhere else."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec

from trtconv.core.errors import InvalidRequestError, MissingDependencyError, did_you_mean

VARIABLE = "TRTCONV_CUDA"
LIBRARIES = ("pycuda", "driver", "torch")
INSTALL_PYCUDA = "pip install pycuda"


@dataclass(frozen=True)
class CudaChoice:
    """One of `LIBRARIES`, and why it was chosen."""

    library: str
    reason: str


def choose_cuda() -> CudaChoice:
    """The library that is used in this process.

    `TRTCONV_CUDA` forces one. Otherwise torch's allocator is used where torch has started CUDA in this process, pycuda
    where it is installed, and the driver itself elsewhere. Raises InvalidRequestError for an unknown name in
    `TRTCONV_CUDA`, MissingDependencyError when the library named there does not load.
    """
    name = os.environ.get(VARIABLE, "").strip().lower() or "auto"
    if name != "auto":
        return _forced(name)
    if _torch_uses_cuda():
        return CudaChoice("torch", "torch uses the GPU in this process, and two allocators share one badly")
    problem = _pycuda_problem()
    if problem:
        return CudaChoice("driver", f"pycuda {problem}")
    return CudaChoice("pycuda", "pycuda is installed")


def _forced(name: str) -> CudaChoice:
    if name not in LIBRARIES:
        raise InvalidRequestError(
            f"{VARIABLE} names no CUDA library: '{name}'{did_you_mean(name, LIBRARIES)}",
            hint="one of auto, " + ", ".join(LIBRARIES),
        )
    reason = f"{VARIABLE}={name}"
    if name == "pycuda":
        problem = _pycuda_problem()
        if problem:
            raise MissingDependencyError(f"{reason}, but pycuda {problem}", hint=INSTALL_PYCUDA)
    if name == "torch":
        try:
            available = bool(import_module("torch").cuda.is_available())
        except ImportError:
            available = False
        if not available:
            raise MissingDependencyError(f"{reason}, but torch has no CUDA here", hint="install a torch with CUDA")
    return CudaChoice(name, reason)


def _torch_uses_cuda() -> bool:
    """True where torch has started CUDA already; torch is never imported for the answer."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available()) and bool(torch.cuda.is_initialized())


def _pycuda_problem() -> str:
    """Why pycuda cannot be used; empty when it can."""
    try:
        if find_spec("pycuda") is None:
            return "is not installed"
        import_module("pycuda.driver")
    except Exception as error:  # noqa: BLE001 - built for another CUDA, it fails in any way
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return f"is installed but does not load: {first}"
    return ""
