"""Device memory by torch's caching allocator, for machines where pycuda cannot be compiled."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda_context import PrimaryContext
from trtconv.backends.pycuda_memory import out_of_memory
from trtconv.core.errors import MissingDependencyError, TrtconvError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda_memory import DeviceBuffer

    Array = np.ndarray[Any, np.dtype[Any]]


@dataclass
class _Buffer:
    """Keeps torch's tensor alive."""

    pointer: int
    size: int
    owner: Any


class TorchMemory:
    """See `CudaMemory`."""

    name = "torch"

    def __init__(self, device: int) -> None:
        import torch

        if not torch.cuda.is_available():
            raise MissingDependencyError(
                "the installed torch has no CUDA, and pycuda is not installed",
                hint="pip install pycuda, or a torch with CUDA",
            )
        self._torch = torch
        self._device = torch.device("cuda", device)
        torch.cuda.init()
        self._primary = PrimaryContext(device)
        self._streams: dict[int, Any] = {}
        self._lock = threading.Lock()

    def activate(self) -> None:
        """Make the primary context current in this thread."""
        self._primary.make_current()

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        try:
            owner = self._torch.empty(max(size, 1), dtype=self._torch.uint8, device=self._device)
        except self._torch.cuda.OutOfMemoryError as error:
            raise out_of_memory(size, self.free_bytes()) from error
        return _Buffer(int(owner.data_ptr()), size, owner)

    def create_stream(self) -> int:
        """A new stream."""
        stream = self._torch.cuda.Stream(self._device)
        with self._lock:
            self._streams[int(stream.cuda_stream)] = stream
        return int(stream.cuda_stream)

    def upload(self, pointer: int, array: Array, stream: int) -> None:
        """Host to device."""
        self._primary.copy_to_device(pointer, array.ctypes.data, array.nbytes, stream)

    def download(self, array: Array, pointer: int, stream: int) -> None:
        """Device to host."""
        self._primary.copy_to_host(array.ctypes.data, pointer, array.nbytes, stream)

    def copy(self, target: int, source: int, size: int, stream: int) -> None:
        """Device to device."""
        self._primary.copy_on_device(target, source, size, stream)

    def synchronize(self, stream: int) -> None:
        """Wait for a stream."""
        try:
            self._streams[stream].synchronize()
        except RuntimeError as error:
            raise TrtconvError(
                f"the GPU failed while the engine ran: {error}", hint="run again with CUDA_LAUNCH_BLOCKING=1"
            ) from error

    def record(self, stream: int) -> Any:
        """A timing event."""
        event = self._torch.cuda.Event(enable_timing=True)
        event.record(self._streams[stream])
        return event

    def elapsed(self, start: Any, end: Any) -> float:
        """Seconds."""
        end.synchronize()
        return float(start.elapsed_time(end)) / 1e3

    def free_bytes(self) -> int:
        """Free memory."""
        return int(self._torch.cuda.mem_get_info(self._device)[0])
