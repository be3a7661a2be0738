"""Device memory, streams and events by pycuda, on the device's primary context.

How pycuda 2026.1 behaves (its `src/cpp/cuda.hpp`): each thread has its own stack of contexts, and whatever is on it
when the thread ends aborts the process. An allocation, stream or event is freed in its destructor: in any thread where
its `Context` is on top, in the thread that made the `Context` also without that, and in any other thread not at all,
with a warning. So there is one `Context` for each device, pushed for the length of a call and popped again, and what is
let go is freed inside such a call (`ContextScope`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from contextlib import AbstractContextManager
from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

from trtconv.backends.cuda.context import current_context, open_driver, owns_pointer
from trtconv.backends.cuda.driver_memory import copy, download, out_of_memory, synchronize, upload
from trtconv.backends.cuda.scope import ContextScope, DeviceResource
from trtconv.core.errors import TrtconvError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import DeviceBuffer, Stream, StreamTimer

    Array = np.ndarray[Any, np.dtype[Any]]

T = TypeVar("T")
_NON_BLOCKING = 1


class _Held(DeviceResource):
    """A pycuda object. The list holds its only reference, so that clearing it runs the destructor there and then."""

    def __init__(self, scope: ContextScope, native: Any) -> None:
        self._only = [native]
        super().__init__(scope, self._only.clear)

    @property
    def native(self) -> Any:
        """The pycuda object; not to be kept."""
        return self._only[0]


class PycudaBuffer(_Held):
    """A `DeviceAllocation`."""

    def __init__(self, scope: ContextScope, native: Any, size: int) -> None:
        super().__init__(scope, native)
        self.size, self.pointer = size, int(native)


class PycudaStream(_Held):
    """A `pycuda.driver.Stream`."""

    def __init__(self, scope: ContextScope, native: Any) -> None:
        super().__init__(scope, native)
        self.handle = int(native.handle)


class PycudaInterval:
    """See `Interval`."""

    def __init__(self, memory: PycudaMemory, stream: PycudaStream) -> None:
        self._memory, self._stream = memory, stream
        with memory.current():
            self._start, self._end = (_Held(memory.scope, memory.checked(memory.cuda.Event)) for _ in range(2))

    def begin(self) -> None:
        """Here the clock starts."""
        with self._memory.current():
            self._memory.checked(self._start.native.record, self._stream.native)

    def end(self) -> None:
        """Here it stops."""
        with self._memory.current():
            self._memory.checked(self._end.native.record, self._stream.native)

    def seconds(self) -> float:
        """Seconds between both places."""
        with self._memory.current():
            self._memory.checked(self._end.native.synchronize)
            return float(self._memory.checked(self._end.native.time_since, self._start.native)) / 1e3


@cache
def primary_context(device: int) -> Any:
    """The one `Context` by which this process uses a device; pycuda compares contexts by their Python object.

    It is never detached: engines that nobody closed free their memory after the last line of the program. pycuda would
    also release a primary context wrongly in its destructor (cuCtxDetach in place of cuDevicePrimaryCtxRelease).
    """
    import pycuda.driver as cuda

    cuda.init()
    context = cuda.Device(device).retain_primary_context()
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(context))
    return context


class PycudaMemory:
    """See `CudaMemory`. Streams of other libraries, which pycuda cannot name, are served by the driver."""

    name = "pycuda"

    def __init__(self, device: int) -> None:
        import pycuda.driver as cuda

        self.cuda = cuda
        self.driver = open_driver()
        primary = self.checked(primary_context, device)
        self.scope = ContextScope(partial(self.checked, primary.push), partial(self.checked, primary.pop))
        with self.scope:
            self._context = current_context(self.driver)

    def current(self) -> AbstractContextManager[None]:
        """The primary context is current inside this block."""
        return self.scope

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        with self.scope:
            self.scope.free_discarded()
            try:
                native = self.cuda.mem_alloc(max(size, 1))
            except self.cuda.MemoryError as error:
                raise out_of_memory(size, int(self.cuda.mem_get_info()[0])) from error
            except self.cuda.Error as error:
                raise _failure(error) from error
            return PycudaBuffer(self.scope, native, size)

    def create_stream(self) -> Stream:
        """A new stream."""
        with self.scope:
            return PycudaStream(self.scope, self.checked(self.cuda.Stream, _NON_BLOCKING))

    def upload(self, pointer: int, array: Array, stream: Stream) -> None:
        """Host to device."""
        if not array.nbytes:
            return
        with self.scope:
            if isinstance(stream, PycudaStream):
                self.checked(self.cuda.memcpy_htod_async, pointer, _bytes_of(array), stream.native)
            else:
                upload(self.driver, pointer, array, stream.handle)

    def download(self, array: Array, pointer: int, stream: Stream) -> None:
        """Device to host."""
        if not array.nbytes:
            return
        with self.scope:
            if isinstance(stream, PycudaStream):
                self.checked(self.cuda.memcpy_dtoh_async, _bytes_of(array), pointer, stream.native)
            else:
                download(self.driver, array, pointer, stream.handle)

    def copy(self, target: int, source: int, size: int, stream: Stream) -> None:
        """Device to device."""
        if not size:
            return
        with self.scope:
            if isinstance(stream, PycudaStream):
                self.checked(self.cuda.memcpy_dtod_async, target, source, size, stream.native)
            else:
                copy(self.driver, target, source, size, stream.handle)

    def synchronize(self, stream: Stream) -> None:
        """Wait for a stream."""
        with self.scope:
            if isinstance(stream, PycudaStream):
                self.checked(stream.native.synchronize)
            else:
                synchronize(self.driver, stream.handle)

    def interval(self, stream: Stream) -> StreamTimer:
        """A stopwatch on a stream that was created here."""
        if not isinstance(stream, PycudaStream):
            raise TrtconvError("an interval is measured on a stream that trtconv created")
        return PycudaInterval(self, stream)

    def free_bytes(self) -> int:
        """Free memory of the device."""
        with self.scope:
            self.scope.free_discarded()
            return int(self.checked(self.cuda.mem_get_info)[0])

    def owns(self, pointer: int) -> bool:
        """False for memory of another context."""
        return owns_pointer(self.driver, self._context, pointer)

    def checked(self, call: Callable[..., T], *arguments: object) -> T:
        """What `call` gives; errors of pycuda become TrtconvError."""
        try:
            return call(*arguments)
        except self.cuda.MemoryError as error:
            raise TrtconvError(f"the GPU is out of memory ({error})", hint="close what else uses the GPU") from error
        except self.cuda.Error as error:
            raise _failure(error) from error


def _failure(error: Exception) -> TrtconvError:
    return TrtconvError(f"the work on the GPU failed: {error}", hint="see `trtconv doctor`")


def _bytes_of(array: Array) -> Array:
    """The same memory as bytes: not every element type (bfloat16) has a buffer that pycuda takes."""
    import numpy as np

    return array.reshape(-1).view(np.uint8)
