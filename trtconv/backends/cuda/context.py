"""The primary context, plain copies, stream order and CUDA graphs by the driver's own functions, through ctypes.

Names and signatures are those of cuda.h; they have been stable since CUDA 11.4.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from typing import Any

from trtconv.backends.cuda.driver import load_driver
from trtconv.core.errors import MissingDependencyError, TrtconvError

_THREAD_LOCAL_CAPTURE = 1
_DISABLE_TIMING = 2
_OUT_OF_MEMORY = 2

_SIGNATURES: dict[str, list[Any]] = {
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuCtxSetCurrent": [c_void_p],
    "cuMemcpyHtoDAsync_v2": [c_ulonglong, c_void_p, c_size_t, c_void_p],
    "cuMemcpyDtoHAsync_v2": [c_void_p, c_ulonglong, c_size_t, c_void_p],
    "cuMemcpyDtoDAsync_v2": [c_ulonglong, c_ulonglong, c_size_t, c_void_p],
    "cuMemAlloc_v2": [c_void_p, c_size_t],
    "cuMemFree_v2": [c_ulonglong],
    "cuMemGetInfo_v2": [c_void_p, c_void_p],
    "cuStreamCreate": [c_void_p, c_uint],
    "cuStreamDestroy_v2": [c_void_p],
    "cuStreamSynchronize": [c_void_p],
    "cuEventElapsedTime": [c_void_p, c_void_p, c_void_p],
    "cuStreamBeginCapture_v2": [c_void_p, c_uint],
    "cuStreamEndCapture": [c_void_p, c_void_p],
    "cuGraphInstantiateWithFlags": [c_void_p, c_void_p, c_ulonglong],
    "cuGraphLaunch": [c_void_p, c_void_p],
    "cuGraphExecDestroy": [c_void_p],
    "cuGraphDestroy": [c_void_p],
    "cuEventCreate": [c_void_p, c_uint],
    "cuEventRecord": [c_void_p, c_void_p],
    "cuEventSynchronize": [c_void_p],
    "cuEventDestroy_v2": [c_void_p],
    "cuStreamWaitEvent": [c_void_p, c_void_p, c_uint],
}


def open_driver() -> ctypes.CDLL:
    """The driver library with its argument types set. Raises MissingDependencyError when there is none."""
    library = load_driver()
    if library is None:
        raise MissingDependencyError("no NVIDIA driver is installed", hint="run this on a machine with a GPU")
    for name, types in _SIGNATURES.items():
        getattr(library, name).argtypes = types
    return library


class PrimaryContext:
    """The primary context of a device, retained for the life of the process."""

    def __init__(self, device: int) -> None:
        self.driver = open_driver()
        self._checked("cuInit", self.driver.cuInit(0))
        handle = c_void_p()
        self._checked("cuDevicePrimaryCtxRetain", self.driver.cuDevicePrimaryCtxRetain(byref(handle), device))
        self._handle = handle
        self._seen = threading.local()

    def make_current(self) -> None:
        """Once per thread; cheap afterwards."""
        if not getattr(self._seen, "done", False):
            self._checked("cuCtxSetCurrent", self.driver.cuCtxSetCurrent(self._handle))
            self._seen.done = True

    def copy_to_device(self, target: int, source: int, size: int, stream: int) -> None:
        """`size` bytes from host memory."""
        self._checked("copy to the GPU", self.driver.cuMemcpyHtoDAsync_v2(target, source, size, stream) if size else 0)

    def copy_to_host(self, target: int, source: int, size: int, stream: int) -> None:
        """`size` bytes to host memory."""
        self._checked(
            "copy from the GPU", self.driver.cuMemcpyDtoHAsync_v2(target, source, size, stream) if size else 0
        )

    def copy_on_device(self, target: int, source: int, size: int, stream: int) -> None:
        """`size` bytes on the device."""
        self._checked("copy on the GPU", self.driver.cuMemcpyDtoDAsync_v2(target, source, size, stream) if size else 0)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        self._checked("the work on the GPU", self.driver.cuStreamSynchronize(stream))

    def _checked(self, what: str, code: int) -> None:
        check(self.driver, what, code)


def check(driver: Any, what: str, code: int) -> None:
    """Raise TrtconvError with the driver's name for an error code other than 0."""
    if code:
        text = ctypes.c_char_p()
        driver.cuGetErrorName(code, byref(text))
        name = text.value.decode() if text.value else str(code)
        if code == _OUT_OF_MEMORY:
            raise TrtconvError(f"{what}: the GPU is out of memory ({name})", hint="close what else uses the GPU")
        raise TrtconvError(f"{what} failed: {name}", hint="see `trtconv doctor`")


class StreamOrder:
    """Orders streams with one event that is used again and again; a wait holds what was recorded when it was asked."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._event = c_void_p()

    def wait(self, waiting: int, working: int) -> None:
        """Let stream `waiting` go on only after what stream `working` has been given so far."""
        driver = self._driver
        if not self._event:
            check(driver, "cuEventCreate", driver.cuEventCreate(byref(self._event), _DISABLE_TIMING))
        check(driver, "cuEventRecord", driver.cuEventRecord(self._event, working))
        check(driver, "cuStreamWaitEvent", driver.cuStreamWaitEvent(waiting, self._event, 0))

    def __del__(self) -> None:
        if self._event:
            with contextlib.suppress(Exception):
                self._driver.cuEventDestroy_v2(self._event)


def wait_for(driver: Any, waiting: int, working: int) -> None:
    """Let stream `waiting` go on only after what stream `working` has been given so far."""
    StreamOrder(driver).wait(waiting, working)


class RetainedSet:
    """Objects that a stream's work still reads; they are let go when an event after that work has happened."""

    def __init__(self, driver: Any) -> None:
        self._driver = driver
        self._event = c_void_p()
        self._owners: tuple[object, ...] = ()
        self._marked = False

    def __del__(self) -> None:
        if self._event:
            with contextlib.suppress(Exception):
                self._driver.cuEventDestroy_v2(self._event)

    def mark(self, stream: int) -> None:
        """The objects held now have been read when `stream` has come to this place."""
        if not self._owners:
            return
        driver = self._driver
        if not self._event:
            check(driver, "cuEventCreate", driver.cuEventCreate(byref(self._event), _DISABLE_TIMING))
        check(driver, "cuEventRecord", driver.cuEventRecord(self._event, stream))
        self._marked = True

    def replace(self, owners: tuple[object, ...]) -> None:
        """Wait until the objects held so far were read (where that was marked), then hold these."""
        if self._owners and self._marked:
            check(self._driver, "cuEventSynchronize", self._driver.cuEventSynchronize(self._event))
        self._owners, self._marked = owners, False


class CudaGraph:
    """Work captured from one stream, to be launched again with a single call."""

    def __init__(self, driver: Any, stream: int) -> None:
        self._driver = driver
        self._stream = c_void_p(stream)
        self._exec = c_void_p()
        self._launch = driver.cuGraphLaunch

    def __enter__(self) -> CudaGraph:
        code = self._driver.cuStreamBeginCapture_v2(self._stream, _THREAD_LOCAL_CAPTURE)
        check(self._driver, "CUDA graph capture", code)
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        graph = c_void_p()
        code = self._driver.cuStreamEndCapture(self._stream, byref(graph))
        if kind is None:
            check(self._driver, "CUDA graph capture", code)
            code = self._driver.cuGraphInstantiateWithFlags(byref(self._exec), graph, 0)
            check(self._driver, "CUDA graph instantiation", code)
        if graph:
            self._driver.cuGraphDestroy(graph)

    def launch(self) -> None:
        """Run the captured work in its stream."""
        code = self._launch(self._exec, self._stream)
        if code:
            check(self._driver, "CUDA graph launch", code)

    def close(self) -> None:
        """Free the graph."""
        if self._exec:
            self._driver.cuGraphExecDestroy(self._exec)
            self._exec = c_void_p()
