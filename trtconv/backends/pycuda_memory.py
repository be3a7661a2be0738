"""Device memory by pycuda, on the primary context.

pycuda aborts the process when its own context stack is not empty at exit, so the context is pushed only around the
calls that look at that stack; for everything else the driver's current context is enough.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda_context import PrimaryContext
from trtconv.core.errors import TrtconvError
from trtconv.core.sizes import format_bytes

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda_memory import DeviceBuffer

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class _Buffer:
    """Keeps pycuda's allocation alive."""

    pointer: int
    size: int
    owner: Any


class PycudaMemory:
    """See `CudaMemory`."""

    name = "pycuda"

    def __init__(self, device: int) -> None:
        import pycuda.driver as driver

        driver.init()
        self._driver = driver
        self._primary = PrimaryContext(device)
        self._context = driver.Device(device).retain_primary_context()
        self._streams: dict[int, Any] = {}
        self._lock = threading.Lock()

    @contextmanager
    def _pushed(self) -> Iterator[None]:
        self._context.push()
        try:
            yield
        finally:
            self._driver.Context.pop()

    def activate(self) -> None:
        """Make the primary context current in this thread."""
        self._primary.make_current()

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        with self._pushed():
            try:
                owner = self._driver.mem_alloc(max(size, 1))
            except self._driver.MemoryError as error:
                free = self._driver.mem_get_info()[0]
                raise out_of_memory(size, free) from error
        return _Buffer(int(owner), size, owner)

    def create_stream(self) -> int:
        """A new stream."""
        with self._pushed():
            stream = self._driver.Stream(flags=1)
        with self._lock:
            self._streams[int(stream.handle)] = stream
        return int(stream.handle)

    def upload(self, pointer: int, array: Array, stream: int) -> None:
        """Host to device."""
        if array.size:
            self._driver.memcpy_htod_async(pointer, _bytes(array), self._streams[stream])

    def download(self, array: Array, pointer: int, stream: int) -> None:
        """Device to host."""
        if array.size:
            self._driver.memcpy_dtoh_async(_bytes(array), pointer, self._streams[stream])

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Device to device."""
        if size:
            self._driver.memcpy_dtod_async(target, source, size, self._streams[stream])

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        try:
            self._streams[stream].synchronize()
        except self._driver.Error as error:
            raise TrtconvError(
                f"the GPU failed while the engine ran: {error}", hint="run again with CUDA_LAUNCH_BLOCKING=1"
            ) from error

    def record(self, stream: int) -> Any:
        """A timing event."""
        with self._pushed():
            event = self._driver.Event()
            event.record(self._streams[stream])
        return event

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds."""
        end.synchronize()
        return float(start.time_till(end)) / 1e3

    def free_bytes(self) -> int:
        """Free memory."""
        with self._pushed():
            return int(self._driver.mem_get_info()[0])


def _bytes(array: Array) -> Array:
    """The same memory as bytes: pycuda knows no bfloat16."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)


def out_of_memory(size: int, free: int) -> TrtconvError:
    """The error for an allocation that did not fit."""
    return TrtconvError(
        f"the GPU is out of memory: {format_bytes(size)} were wanted and {format_bytes(free)} are free",
        hint="close what else uses the GPU, or run smaller shapes",
    )
