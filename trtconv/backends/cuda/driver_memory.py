"""Device memory, streams and events by the driver alone, on the primary context: nothing to install or to compile.

pycuda was tried first: its contexts, allocations and streams belong to the thread that made them, so that one thread
cannot free what another one left (it warns and leaks), and it has no wheels. Its arrays can still be inputs, through
`__cuda_array_interface__`.
"""

from __future__ import annotations

import contextlib
from ctypes import byref, c_float, c_size_t, c_ulonglong, c_void_p
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.context import PrimaryContext, check
from trtconv.core.errors import TrtconvError
from trtconv.core.sizes import format_bytes

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import DeviceBuffer, Stream

    Array = np.ndarray[Any, np.dtype[Any]]

_OUT_OF_MEMORY = 2
_NON_BLOCKING = 1


class DriverBuffer:
    """Memory from cuMemAlloc, given back with the last reference, in whichever thread that goes."""

    def __init__(self, context: PrimaryContext, size: int) -> None:
        self.size = size
        self.pointer = 0
        self._context = context
        found = c_ulonglong()
        code = context.driver.cuMemAlloc_v2(byref(found), max(size, 1))
        if code == _OUT_OF_MEMORY:
            raise out_of_memory(size, free_bytes(context))
        check(context.driver, "allocating GPU memory", code)
        self.pointer = int(found.value)

    def __del__(self) -> None:
        if self.pointer:
            # The driver may be gone already while the interpreter ends.
            with contextlib.suppress(Exception):
                self._context.make_current()
                self._context.driver.cuMemFree_v2(self.pointer)


class DriverStream:
    """A stream that does not wait for the default stream."""

    def __init__(self, context: PrimaryContext) -> None:
        self.handle = 0
        self._context = context
        found = c_void_p()
        check(context.driver, "creating a stream", context.driver.cuStreamCreate(byref(found), _NON_BLOCKING))
        self.handle = int(found.value or 0)

    def __del__(self) -> None:
        if self.handle:
            with contextlib.suppress(Exception):
                self._context.make_current()
                self._context.driver.cuStreamDestroy_v2(self.handle)


class DriverEvent:
    """A timing event."""

    def __init__(self, context: PrimaryContext, stream: int) -> None:
        self.handle = c_void_p()
        self._context = context
        check(context.driver, "creating an event", context.driver.cuEventCreate(byref(self.handle), 0))
        check(context.driver, "recording an event", context.driver.cuEventRecord(self.handle, stream))

    def __del__(self) -> None:
        if self.handle:
            with contextlib.suppress(Exception):
                self._context.driver.cuEventDestroy_v2(self.handle)


class DriverMemory:
    """See `CudaMemory`."""

    name = "CUDA driver"

    def __init__(self, device: int) -> None:
        self._context = PrimaryContext(device)

    def activate(self) -> None:
        """Make the primary context current in this thread."""
        self._context.make_current()

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        self._context.make_current()
        return DriverBuffer(self._context, size)

    def create_stream(self) -> Stream:
        """A new stream."""
        self._context.make_current()
        return DriverStream(self._context)

    def upload(self, pointer: int, array: Array, stream: int) -> None:
        """Host to device."""
        self._context.copy_to_device(pointer, array.ctypes.data, array.nbytes, stream)

    def download(self, array: Array, pointer: int, stream: int) -> None:
        """Device to host."""
        self._context.copy_to_host(array.ctypes.data, pointer, array.nbytes, stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Device to device."""
        self._context.copy_on_device(target, source, size, stream)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        self._context.synchronize(stream)

    def record(self, stream: int) -> DriverEvent:
        """A timing event."""
        return DriverEvent(self._context, stream)

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds."""
        driver, found = self._context.driver, c_float()
        check(driver, "waiting for an event", driver.cuEventSynchronize(end.handle))
        check(driver, "reading events", driver.cuEventElapsedTime(byref(found), start.handle, end.handle))
        return float(found.value) / 1e3

    def free_bytes(self) -> int:
        """Free memory."""
        self._context.make_current()
        return free_bytes(self._context)


def free_bytes(context: PrimaryContext) -> int:
    """Free memory of the current context's device."""
    free, total = c_size_t(), c_size_t()
    check(context.driver, "asking for free memory", context.driver.cuMemGetInfo_v2(byref(free), byref(total)))
    return int(free.value)


def out_of_memory(size: int, free: int) -> TrtconvError:
    """The error for an allocation that did not fit."""
    return TrtconvError(
        f"the GPU is out of memory: {format_bytes(size)} were wanted and {format_bytes(free)} are free",
        hint="close what else uses the GPU, or run smaller shapes",
    )
