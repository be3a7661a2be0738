"""An engine's output that stays on the GPU."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.array_interface import array_interface
from trtconv.backends.cuda.context import wait_for
from trtconv.backends.cuda.dlpack import CUDA, export_cuda
from trtconv.core.dtypes import DType

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import CudaMemory, DeviceBuffer

_DEFAULT_STREAMS = (None, -1, 0)


@dataclass
class DeviceArray:
    """Device memory with shape and dtype; for `torch.from_dlpack`, CuPy, Numba, pycuda, or `numpy()`.

    It lies in the runner's buffer: the next run in the same thread writes over it, so copy what has to stay. `owner`
    keeps the stream alive.
    """

    pointer: int
    shape: tuple[int, ...]
    dtype: DType
    stream: int
    buffer: DeviceBuffer
    memory: CudaMemory
    driver: Any
    owner: Any = None
    device: int = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return CUDA, self.device

    def __dlpack__(self, *, stream: int | None = None, **_: Any) -> Any:
        # 1 and 2 are the legacy and the per-thread default stream by the array API standard; -1 asks for no order.
        if stream not in (-1, self.stream):
            wait_for(self.driver, 0 if stream in (*_DEFAULT_STREAMS, 1) else int(stream or 0), self.stream)
        return export_cuda(self.pointer, self.shape, self.dtype, self.device, self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return array_interface(self.pointer, self.shape, self.dtype.numpy().str, self.stream)

    @property
    def nbytes(self) -> int:
        """Size in bytes."""
        return math.prod(self.shape) * self.dtype.size

    def numpy(self) -> np.ndarray[Any, np.dtype[Any]]:
        """A copy in host memory."""
        import numpy as np

        array = np.empty(self.shape, self.dtype.numpy())
        self.memory.activate()
        self.memory.download(array, self.pointer, self.stream)
        self.memory.synchronize(self.stream)
        return array
