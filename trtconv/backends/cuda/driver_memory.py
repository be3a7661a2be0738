"""Device memory, streams and events by the driver alone, on the primary context: nothing to install or to compile."""

from __future__ import annotations

import ctypes
from contextlib import AbstractContextManager
from ctypes import byref, c_float, c_size_t, c_ulonglong, c_void_p
from functools import partial
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.context import PrimaryContext, check, owns_pointer
from trtconv.backends.cuda.scope import ContextScope, DeviceResource
from trtconv.core.errors import TrtconvError
from trtconv.core.sizes import format_bytes

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import DeviceBuffer, Stream, StreamTimer

    Array = np.ndarray[Any, np.dtype[Any]]

_OUT_OF_MEMORY = 2
_NON_BLOCKING = 1


class DriverBuffer(DeviceResource):
    """Memory from cuMemAlloc. To be made with the context current."""

    def __init__(self, driver: ctypes.CDLL, scope: ContextScope, size: int) -> None:
        address = c_ulonglong()
        code = driver.cuMemAlloc_v2(byref(address), max(size, 1))
        if code == _OUT_OF_MEMORY:
            raise out_of_memory(size, free_bytes(driver))
        check(driver, "allocating GPU memory", code)
        self.size, self.pointer = size, int(address.value)
        super().__init__(scope, partial(driver.cuMemFree_v2, self.pointer))


class DriverStream(DeviceResource):
    """A stream that does not wait for the default stream. To be made with the context current."""

    def __init__(self, driver: ctypes.CDLL, scope: ContextScope) -> None:
        handle = c_void_p()
        check(driver, "creating a stream", driver.cuStreamCreate(byref(handle), _NON_BLOCKING))
        self.handle = int(handle.value or 0)
        super().__init__(scope, partial(driver.cuStreamDestroy_v2, self.handle))


class DriverEvent(DeviceResource):
    """A timing event. To be made with the context current."""

    def __init__(self, driver: ctypes.CDLL, scope: ContextScope) -> None:
        handle = c_void_p()
        check(driver, "creating an event", driver.cuEventCreate(byref(handle), 0))
        self.handle = int(handle.value or 0)
        super().__init__(scope, partial(driver.cuEventDestroy_v2, self.handle))


class DriverInterval:
    """See `Interval`."""

    def __init__(self, memory: DriverMemory, stream: Stream) -> None:
        self._memory, self._stream = memory, stream
        with memory.current():
            self._start, self._end = (DriverEvent(memory.driver, memory.scope) for _ in range(2))

    def begin(self) -> None:
        """Here the clock starts."""
        self._record(self._start)

    def end(self) -> None:
        """Here it stops."""
        self._record(self._end)

    def _record(self, event: DriverEvent) -> None:
        driver = self._memory.driver
        with self._memory.current():
            check(driver, "recording an event", driver.cuEventRecord(event.handle, self._stream.handle))

    def seconds(self) -> float:
        """Seconds between both places."""
        driver, milliseconds = self._memory.driver, c_float()
        start, end = self._start.handle, self._end.handle
        with self._memory.current():
            check(driver, "waiting for an event", driver.cuEventSynchronize(end))
            check(driver, "reading events", driver.cuEventElapsedTime(byref(milliseconds), start, end))
        return float(milliseconds.value) / 1e3


class DriverMemory:
    """See `CudaMemory`."""

    name = "CUDA driver"

    def __init__(self, device: int) -> None:
        context = PrimaryContext(device)
        self.driver, self.scope = context.driver, context.scope
        self._context = context.handle

    def current(self) -> AbstractContextManager[None]:
        """The primary context is current inside this block."""
        return self.scope

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        with self.scope:
            self.scope.free_discarded()
            return DriverBuffer(self.driver, self.scope, size)

    def create_stream(self) -> Stream:
        """A new stream."""
        with self.scope:
            return DriverStream(self.driver, self.scope)

    def upload(self, pointer: int, array: Array, stream: Stream) -> None:
        """Host to device."""
        if array.nbytes:
            with self.scope:
                upload(self.driver, pointer, array, stream.handle)

    def download(self, array: Array, pointer: int, stream: Stream) -> None:
        """Device to host."""
        if array.nbytes:
            with self.scope:
                download(self.driver, array, pointer, stream.handle)

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Device to device."""
        if size:
            with self.scope:
                copy(self.driver, target, source, size, stream.handle)

    def synchronize(self, stream: Stream) -> None:
        """Wait for a stream."""
        with self.scope:
            synchronize(self.driver, stream.handle)

    def interval(self, stream: Stream) -> StreamTimer:
        """A stopwatch on a stream."""
        return DriverInterval(self, stream)

    def free_bytes(self) -> int:
        """Free memory of the device."""
        with self.scope:
            self.scope.free_discarded()
            return free_bytes(self.driver)

    def owns(self, pointer: int) -> bool:
        """False for memory of another context."""
        return owns_pointer(self.driver, self._context, pointer)


def upload(driver: ctypes.CDLL, pointer: int, array: Array, stream: int) -> None:
    """Host to device, with the context current."""
    check(driver, "copy to the GPU", driver.cuMemcpyHtoDAsync_v2(pointer, array.ctypes.data, array.nbytes, stream))


def download(driver: ctypes.CDLL, array: Array, pointer: int, stream: int) -> None:
    """Device to host, with the context current."""
    check(driver, "copy from the GPU", driver.cuMemcpyDtoHAsync_v2(array.ctypes.data, pointer, array.nbytes, stream))


def copy(driver: ctypes.CDLL, target: int, source: int, size: int, stream: int) -> None:
    """Device to device, with the context current."""
    check(driver, "copy on the GPU", driver.cuMemcpyDtoDAsync_v2(target, source, size, stream))


def synchronize(driver: ctypes.CDLL, stream: int) -> None:
    """Wait for a stream, with the context current."""
    check(driver, "the work on the GPU", driver.cuStreamSynchronize(stream))


def free_bytes(driver: ctypes.CDLL) -> int:
    """Free memory of the current context's device."""
    free, total = c_size_t(), c_size_t()
    check(driver, "asking for free memory", driver.cuMemGetInfo_v2(byref(free), byref(total)))
    return int(free.value)


def out_of_memory(size: int, free: int) -> TrtconvError:
    """The error for an allocation that did not fit."""
    return TrtconvError(
        f"the GPU is out of memory: {format_bytes(size)} were wanted and {format_bytes(free)} are free",
        hint="close what else uses the GPU, or run smaller shapes",
    )
