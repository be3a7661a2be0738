"""An engine's output that stays on the GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.array_interface import array_interface
from trtconv.backends.cuda.context import wait_for
from trtconv.backends.cuda.dlpack import CUDA, export_cuda
from trtconv.core.dtypes import DType
from trtconv.core.errors import MissingDependencyError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import CudaMemory, DeviceBuffer, Stream

_DEFAULT_STREAMS = (None, -1, 0)


@dataclass
class DeviceArray:
    """Device memory with shape and dtype; for `torch.from_dlpack`, CuPy, Numba, `gpuarray()`, or `numpy()`.

    It lies in the runner's buffer: the next run in the same thread writes over it, so copy what has to stay.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: DType
    stream: Stream
    buffer: DeviceBuffer
    memory: CudaMemory
    device: int = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: object) -> object:
        # 1 and 2 are the legacy and the per-thread default stream by the array API standard; -1 asks for no order.
        if stream not in (-1, self.stream.handle):
            waiting = 0 if stream in (*_DEFAULT_STREAMS, 1) else int(stream or 0)
            with self.memory.current():
                wait_for(self.memory.driver, waiting, self.stream.handle)
        return export_cuda(self.pointer, self.shape, self.dtype, self.device, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return array_interface(self.pointer, self.shape, self.dtype.numpy().str, self.stream.handle)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.size

    def gpuarray(self) -> Any:
        """The same memory as a `pycuda.gpuarray.GPUArray`; waits until it is filled, since a GPUArray has no stream.

        It can be used where the device's primary context is current (`pycuda.autoprimaryctx`). Raises
        MissingDependencyError without pycuda.
        """
        try:
            from pycuda.gpuarray import GPUArray
        except ImportError as error:
            raise MissingDependencyError("pycuda is not installed", hint="pip install pycuda") from error
        self.memory.synchronize(self.stream)
        return GPUArray(self.shape, self.dtype.numpy(), base=self, gpudata=self.pointer)

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy in host memory."""
        import numpy as np

        array = np.empty(self.shape, self.dtype.numpy())
        with self.memory.current():
            self.memory.download(array, self.pointer, self.stream)
            self.memory.synchronize(self.stream)
        return array
