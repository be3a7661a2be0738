"""The CUDA driver through ctypes: is there one, which GPUs does it see. Needs no package and cannot crash.

TensorRT 8.6 and 11 crash when a Runtime or Builder is used without a driver, so this is asked first. Function names
and attribute numbers are those of the CUDA driver API (cuda.h), stable since CUDA 3.2.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any

from trtconv.core.errors import MissingDependencyError

_MAJOR, _MINOR, _MULTIPROCESSORS = 75, 76, 16
_NO_DEVICE, _DRIVER_TOO_OLD = 100, 35


@dataclass(frozen=True)
class Gpu:
    """A GPU that the driver sees. `memory` in bytes."""

    index: int
    name: str
    compute_capability: str
    memory: int
    multiprocessors: int
    uuid: str


@dataclass(frozen=True)
class CudaState:
    """The driver's state: `reason` says why nothing can run, and is empty when something can."""

    driver: str
    gpus: tuple[Gpu, ...]
    reason: str = ""


def load_driver() -> ctypes.CDLL | None:
    """The driver library, or None when it is not installed."""
    for name in ("libcuda.so.1", "libcuda.so", "nvcuda.dll"):
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


def probe_cuda() -> CudaState:
    """Ask the driver. Never raises."""
    library = load_driver()
    if library is None:
        return CudaState("", (), "no NVIDIA driver is installed (libcuda.so.1 is not found)")
    code = library.cuInit(0)
    if code:
        reasons = {_NO_DEVICE: "the driver sees no GPU", _DRIVER_TOO_OLD: "the driver is too old"}
        return CudaState("", (), reasons.get(code, f"the NVIDIA driver does not start ({_error_name(library, code)})"))
    version = ctypes.c_int()
    library.cuDriverGetVersion(ctypes.byref(version))
    text = f"{version.value // 1000}.{version.value % 1000 // 10}"
    count = ctypes.c_int()
    code = library.cuDeviceGetCount(ctypes.byref(count))
    if code or not count.value:
        return CudaState(text, (), "the driver sees no GPU")
    return CudaState(text, tuple(_gpu(library, i) for i in range(count.value)))


def require_cuda(what: str) -> Gpu:
    """The first GPU. Raises MissingDependencyError saying that `what` needs one and why there is none."""
    state = probe_cuda()
    if not state.gpus:
        raise MissingDependencyError(
            f"{what} needs an NVIDIA GPU: {state.reason}",
            hint="run this on a machine with a GPU and its driver (check with nvidia-smi)",
        )
    return state.gpus[0]


def _error_name(library: Any, code: int) -> str:
    text = ctypes.c_char_p()
    library.cuGetErrorName(code, ctypes.byref(text))
    return text.value.decode() if text.value else f"error {code}"


def _gpu(library: Any, index: int) -> Gpu:
    device = ctypes.c_int()
    library.cuDeviceGet(ctypes.byref(device), index)
    name = ctypes.create_string_buffer(256)
    library.cuDeviceGetName(name, len(name), device)
    memory = ctypes.c_size_t()
    library.cuDeviceTotalMem_v2(ctypes.byref(memory), device)
    identity = (ctypes.c_ubyte * 16)()
    library.cuDeviceGetUuid(ctypes.byref(identity), device)

    def attribute(number: int) -> int:
        value = ctypes.c_int()
        library.cuDeviceGetAttribute(ctypes.byref(value), number, device)
        return value.value

    capability = f"{attribute(_MAJOR)}.{attribute(_MINOR)}"
    return Gpu(index, name.value.decode(), capability, memory.value, attribute(_MULTIPROCESSORS), bytes(identity).hex())
