"""What the runner needs of a CUDA library, as one protocol that pycuda, the bare driver and torch satisfy.

All are on the device's primary context, the one that torch and the CUDA runtime use, so that an engine, torch and a
user's pycuda code can live in one process and share pointers.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from trtconv.backends.cuda.choice import choose_cuda

if TYPE_CHECKING:
    import ctypes

    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


class DeviceBuffer(Protocol):
    """A piece of device memory that is freed with its last reference. `pointer` is an address, `size` in bytes."""

    @property
    def pointer(self) -> int:
        """The device address."""

    @property
    def size(self) -> int:
        """Size in bytes."""


class Stream(Protocol):
    """A stream; one that was created here is destroyed with its last reference."""

    @property
    def handle(self) -> int:
        """Its `cudaStream_t` as an integer."""


@dataclass(frozen=True)
class ForeignStream:
    """A stream of somebody else, by its handle. It has to live as long as it is used."""

    handle: int


class StreamTimer(Protocol):
    """The time between two places of a stream."""

    def begin(self) -> None:
        """Here the clock starts."""

    def end(self) -> None:
        """Here it stops."""

    def seconds(self) -> float:
        """Seconds between both; waits until the stream has come to the end of the interval."""


class CudaMemory(Protocol):
    """Device memory, streams and events of one device.

    Every method may be called by any thread. `driver` is the driver's library, for what only it can do (CUDA graphs,
    waiting for streams of other libraries).
    """

    @property
    def name(self) -> str:
        """For reports."""

    @property
    def driver(self) -> ctypes.CDLL:
        """The driver's library, with its argument types set."""

    def current(self) -> AbstractContextManager[None]:
        """The primary context is current in the calling thread inside this block. Blocks nest."""

    def allocate(self, size: int) -> DeviceBuffer:
        """`size` bytes; at least one is taken, so that the pointer is never null. Raises TrtconvError without room."""

    def create_stream(self) -> Stream:
        """A new non-blocking stream."""

    def upload(self, pointer: int, array: Array, stream: Stream) -> None:
        """Copy a C-contiguous array to the device, in stream order."""

    def download(self, array: Array, pointer: int, stream: Stream) -> None:
        """Copy device memory into a C-contiguous array, in stream order."""

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Copy `size` bytes on the device, in stream order."""

    def synchronize(self, stream: Stream) -> None:
        """Wait until a stream has done everything it was given. Raises TrtconvError when a kernel failed."""

    def interval(self, stream: Stream) -> StreamTimer:
        """A stopwatch on a stream."""

    def free_bytes(self) -> int:
        """Free memory of the device."""

    def owns(self, pointer: int) -> bool:
        """False for device memory of another context, which kernels in this one cannot read."""


def open_cuda_memory(device: int = 0) -> CudaMemory:
    """The memory of a device by the library that `choose_cuda` names. Raises as that does."""
    library = choose_cuda().library
    if library == "torch":
        from trtconv.backends.cuda.torch_memory import TorchMemory

        return TorchMemory(device)
    if library == "pycuda":
        from trtconv.backends.cuda.pycuda_memory import PycudaMemory

        return PycudaMemory(device)
    from trtconv.backends.cuda.driver_memory import DriverMemory

    return DriverMemory(device)
