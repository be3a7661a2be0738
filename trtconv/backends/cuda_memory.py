"""Device memory, streams and events, from whichever library is installed: pycuda, else torch.

Both work on the device's primary context, the one that torch and the CUDA runtime use, so that an engine and torch
can live in one process and share pointers.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.core.errors import MissingDependencyError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class DeviceBuffer(Protocol):
    """A piece of device memory that is freed with its last reference."""

    pointer: int
    size: int


class CudaMemory(Protocol):
    """What the runner needs of a CUDA library. Streams are integers (a `cudaStream_t`), events are opaque."""

    name: str

    def activate(self) -> None:
        """Make the primary context current in the calling thread."""

    def allocate(self, size: int) -> DeviceBuffer:
        """`size` bytes; at least one is taken, so that the pointer is never null. Raises DeviceMemoryError."""

    def create_stream(self) -> int:
        """A new non-blocking stream, kept alive by this object."""

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


def open_cuda_memory(device: int = 0, prefer: str = "auto") -> CudaMemory:
    """pycuda's memory when it is installed, else torch's. Raises MissingDependencyError when there is neither."""
    if prefer in ("auto", "pycuda") and find_spec("pycuda") is not None:
        from trtconv.backends.pycuda_memory import PycudaMemory

        return PycudaMemory(device)
    if prefer in ("auto", "torch") and find_spec("torch") is not None:
        from trtconv.backends.torch_memory import TorchMemory

        return TorchMemory(device)
    raise MissingDependencyError(
        "running an engine needs pycuda or torch for device memory",
        hint="pip install pycuda (needs a C++ compiler and CUDA), or pip install torch",
    )
