"""Device memory by torch's caching allocator, for a process in which torch uses the GPU already.

Two allocators that each keep what they once took share a GPU badly; with torch's, what one frees the other gets.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trtconv.backends.cuda.driver_memory import DriverMemory, out_of_memory

if TYPE_CHECKING:
    from trtconv.backends.cuda.memory import DeviceBuffer, Stream


@dataclass(frozen=True)
class TorchBuffer:
    """Keeps torch's tensor alive."""

    pointer: int
    size: int
    owner: object


@dataclass(frozen=True)
class TorchStream:
    """Keeps torch's stream alive; its allocator knows it."""

    handle: int
    owner: object


class TorchMemory(DriverMemory):
    """Memory and streams are torch's; copies, events and the context are the driver's, on those streams."""

    name = "torch"

    def __init__(self, device: int) -> None:
        import torch

        torch.cuda.init()
        super().__init__(device)
        self._torch = torch
        self._device = torch.device("cuda", device)

    def allocate(self, size: int) -> DeviceBuffer:
        """Raises TrtconvError when the device has no room."""
        try:
            owner = self._torch.empty(max(size, 1), dtype=self._torch.uint8, device=self._device)
        except self._torch.cuda.OutOfMemoryError as error:
            raise out_of_memory(size, self.free_bytes()) from error
        return TorchBuffer(int(owner.data_ptr()), size, owner)

    def create_stream(self) -> Stream:
        """A new stream."""
        stream = self._torch.cuda.Stream(self._device)
        return TorchStream(int(stream.cuda_stream), stream)
