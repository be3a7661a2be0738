"""The primary context, stream order and CUDA graphs by the driver's own functions, through ctypes.

Names and signatures are those of cuda.h; they have been stable since CUDA 11.4.
"""

from __future__ import annotations

import contextlib
import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_ulonglong, c_void_p
from types import TracebackType
from typing import Any

from trtconv.backends.cuda.driver import load_driver
from trtconv.backends.cuda.scope import ContextScope
from trtconv.core.errors import MissingDependencyError, TrtconvError

_THREAD_LOCAL_CAPTURE = 1
_DISABLE_TIMING = 2
_OUT_OF_MEMORY = 2
_ATTRIBUTE_CONTEXT = 1

_SIGNATURES: dict[str, list[Any]] = {
    "cuDevicePrimaryCtxRetain": [c_void_p, c_int],
    "cuCtxPushCurrent_v2": [c_void_p],
    "cuCtxPopCurrent_v2": [c_void_p],
    "cuCtxGetCurrent": [c_void_p],
    "cuPointerGetAttribute": [c_void_p, c_int, c_ulonglong],
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
    """The primary context of a device, retained for the life of the process. `scope` makes it current for a block."""

    def __init__(self, device: int) -> None:
        self.driver = open_driver()
        check(self.driver, "cuInit", self.driver.cuInit(0))
        handle = c_void_p()
        code = self.driver.cuDevicePrimaryCtxRetain(byref(handle), device)
        check(self.driver, "cuDevicePrimaryCtxRetain", code)
        self.handle = int(handle.value or 0)
        # What is popped is of no interest, so that all threads may write it to the same place.
        self._popped = byref(c_void_p())
        self.scope = ContextScope(self._push, self._pop)

    def _push(self) -> None:
        check(self.driver, "cuCtxPushCurrent", self.driver.cuCtxPushCurrent_v2(self.handle))

    def _pop(self) -> None:
        check(self.driver, "cuCtxPopCurrent", self.driver.cuCtxPopCurrent_v2(self._popped))


def owns_pointer(driver: ctypes.CDLL, context: int, pointer: int) -> bool:
    """False when device memory at `pointer` belongs to another context than the one with this handle.

    Memory that belongs to no context (from a pool, or managed) can be used in all of them.
    """
    owner = c_void_p()
    code = driver.cuPointerGetAttribute(byref(owner), _ATTRIBUTE_CONTEXT, pointer)
    return bool(code) or not owner.value or int(owner.value) == context


def current_context(driver: ctypes.CDLL) -> int:
    """The handle of the context that is current in the calling thread; 0 for none."""
    handle = c_void_p()
    check(driver, "cuCtxGetCurrent", driver.cuCtxGetCurrent(byref(handle)))
    return int(handle.value or 0)


def check(driver: ctypes.CDLL, what: str, code: int) -> None:
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

    def __init__(self, driver: ctypes.CDLL) -> None:
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


def wait_for(driver: ctypes.CDLL, waiting: int, working: int) -> None:
    """Let stream `waiting` go on only after what stream `working` has been given so far."""
    StreamOrder(driver).wait(waiting, working)


class RetainedSet:
    """Objects that a stream's work still reads; they are let go when an event after that work has happened."""

    def __init__(self, driver: ctypes.CDLL) -> None:
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

    def replace(self, owners: tuple[object, ...]) -> tuple[object, ...]:
        """Wait until the objects held so far were read (where that was marked), hold these, and return the former."""
        if self._owners and self._marked:
            check(self._driver, "cuEventSynchronize", self._driver.cuEventSynchronize(self._event))
        released, self._owners, self._marked = self._owners, owners, False
        return released


class CudaGraph:
    """Work captured from one stream, to be launched again with a single call."""

    def __init__(self, driver: ctypes.CDLL, stream: int) -> None:
        self._driver = driver
        self._stream = c_void_p(stream)
        self._exec = c_void_p()
        self._launch = driver.cuGraphLaunch

    def __enter__(self) -> CudaGraph:
        code = self._driver.cuStreamBeginCapture_v2(self._stream, _THREAD_LOCAL_CAPTURE)
        check(self._driver, "CUDA graph capture", code)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
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
