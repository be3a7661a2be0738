"""The CUDA driver through ctypes, as far as launching PTX and timing it goes: no torch, no CUDA runtime."""

from __future__ import annotations

import ctypes
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

_DEFAULT_STREAM_CAPTURE = 2  # CU_STREAM_CAPTURE_MODE_RELAXED


class Cuda:
    """The first GPU's primary context, a stream, and what was allocated."""

    def __init__(self) -> None:
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        device, context = ctypes.c_int(), ctypes.c_void_p()
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.stream = ctypes.c_void_p()
        self.call("cuStreamCreate", ctypes.byref(self.stream), 1)

    def call(self, name: str, *values: Any) -> None:
        code = getattr(self.library, name)(*values)
        if code:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(code, ctypes.byref(text))
            raise RuntimeError(f"{name}: {(text.value or b'').decode()} ({code})")

    def allocate(self, size: int) -> ctypes.c_uint64:
        pointer = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(pointer), ctypes.c_size_t(max(size, 16)))
        return pointer

    def upload(self, array: np.ndarray) -> ctypes.c_uint64:
        pointer = self.allocate(array.nbytes)
        data = np.ascontiguousarray(array)
        if data.nbytes:
            self.call("cuMemcpyHtoD_v2", pointer, ctypes.c_void_p(data.ctypes.data), ctypes.c_size_t(data.nbytes))
        return pointer

    def download(self, pointer: ctypes.c_uint64, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        result = np.empty(shape, dtype)
        if result.nbytes:
            self.call("cuMemcpyDtoH_v2", ctypes.c_void_p(result.ctypes.data), pointer, ctypes.c_size_t(result.nbytes))
        return result

    def fill(self, pointer: ctypes.c_uint64, size: int) -> None:
        """All bytes 0xff: a result that was not written is NaN."""
        self.call("cuMemsetD8_v2", pointer, ctypes.c_ubyte(0xFF), ctypes.c_size_t(max(size, 16)))

    def free(self, pointers: Sequence[ctypes.c_uint64]) -> None:
        for pointer in pointers:
            self.call("cuMemFree_v2", pointer)

    def function(self, ptx: str, entry: str) -> ctypes.c_void_p:
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(ptx.encode()))
        self.call("cuModuleGetFunction", ctypes.byref(function), module, entry.encode())
        return function

    def launch(self, function: ctypes.c_void_p, geometry: tuple[int, int, int], values: Sequence[Any]) -> None:
        """`values` are ctypes objects in the order of the kernel's parameters."""
        grid, block, shared = geometry
        pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, shared, self.stream, pointers, None)

    def copy(self, to: ctypes.c_uint64, source: ctypes.c_uint64, size: int) -> None:
        self.call("cuMemcpyDtoDAsync_v2", to, source, ctypes.c_size_t(size), self.stream)

    def synchronize(self) -> None:
        self.call("cuStreamSynchronize", self.stream)

    def milliseconds(self, calls: Sequence[Callable[[], None]], replays: int = 15) -> float:
        """Median milliseconds of one of `calls`, captured together in a graph."""
        graph, ready = ctypes.c_void_p(), ctypes.c_void_p()
        for call in calls:
            call()
        self.synchronize()
        self.call("cuStreamBeginCapture_v2", self.stream, _DEFAULT_STREAM_CAPTURE)
        for call in calls:
            call()
        self.call("cuStreamEndCapture", self.stream, ctypes.byref(graph))
        self.call("cuGraphInstantiateWithFlags", ctypes.byref(ready), graph, ctypes.c_ulonglong(0))
        start, stop = ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuEventCreate", ctypes.byref(start), 0)
        self.call("cuEventCreate", ctypes.byref(stop), 0)
        times = []
        for _ in range(replays + 5):
            self.call("cuEventRecord", start, self.stream)
            self.call("cuGraphLaunch", ready, self.stream)
            self.call("cuEventRecord", stop, self.stream)
            self.synchronize()
            elapsed_ms = ctypes.c_float()
            self.call("cuEventElapsedTime", ctypes.byref(elapsed_ms), start, stop)
            times.append(elapsed_ms.value)
        self.call("cuGraphExecDestroy", ready)
        self.call("cuGraphDestroy", graph)
        return statistics.median(times[5:]) / len(calls)
