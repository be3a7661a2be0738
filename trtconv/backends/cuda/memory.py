"""Device memory, streams and events: torch's when torch uses the GPU in this process, else the driver's own.

Both are on the device's primary context, the one that torch and the CUDA runtime use, so that an engine and torch can
live in one process and share pointers.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class DeviceBuffer(Protocol):
    """A piece of device memory that is freed with its last reference."""

    pointer: int
    size: int


class Stream(Protocol):
    """A stream that is destroyed with its last reference; `handle` is its `cudaStream_t` as an integer."""

    handle: int


class CudaMemory(Protocol):
    """What the runner needs of a CUDA library. Streams are given as their handles, events are opaque."""

    name: str

    def activate(self) -> None:
        """Make the primary context current in the calling thread."""

    def allocate(self, size: int) -> DeviceBuffer:
        """`size` bytes; at least one is taken, so that the pointer is never null. Raises TrtconvError without room."""

    def create_stream(self) -> Stream:
        """A new non-blocking stream."""

    def upload(self, pointer: int, array: Array, stream: int) -> None:
        """Copy a C-contiguous array to the device, in stream order."""

    def download(self, array: Array, pointer: int, stream: int) -> None:
        """Copy device memory into a C-contiguous array, in stream order."""

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Copy `size` bytes on the device, in stream order."""

    def synchronize(self, stream: int) -> None:
        """Wait until a stream has done everything it was given. Raises TrtconvError when a kernel failed."""

    def record(self, stream: int) -> Any:
        """A timing event at this place of a stream."""

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds between two events that have happened."""

    def free_bytes(self) -> int:
        """Free memory of the device."""


def open_cuda_memory(device: int = 0) -> CudaMemory:
    """Torch's memory where torch has started CUDA in this process, else the driver's. Never imports torch itself."""
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available() and torch.cuda.is_initialized():
        from trtconv.backends.cuda.torch_memory import TorchMemory

        return TorchMemory(device)
    from trtconv.backends.cuda.driver_memory import DriverMemory

    return DriverMemory(device)
