"""Memory for outputs whose size only the data decide."""

from __future__ import annotations

from typing import Any

from trtconv.backends.cuda.memory import CudaMemory, DeviceBuffer


def make_output_allocator(trt: Any, memory: CudaMemory) -> Any:
    """An IOutputAllocator with `buffers` and `shapes` by tensor name; `error` holds what went wrong inside.

    TensorRT 10 and later call the asynchronous form, 8.6 the plain one; the pointer must not be null even for size 0.
    """

    class OutputAllocator(trt.IOutputAllocator):  # type: ignore[misc]
        """Called from C++: exceptions are kept, not raised."""

        def __init__(self) -> None:
            trt.IOutputAllocator.__init__(self)
            self.buffers: dict[str, DeviceBuffer] = {}
            self.shapes: dict[str, tuple[int, ...]] = {}
            self.error: Exception | None = None

        def reallocate_output(self, tensor_name: str, memory_: int, size: int, alignment: int) -> int:
            del memory_, alignment  # cudaMalloc aligns to 256 bytes and more
            held = self.buffers.get(tensor_name)
            if held is not None and held.size >= size:
                return held.pointer
            try:
                self.buffers[tensor_name] = memory.allocate(max(int(size), 1))
            except Exception as error:  # noqa: BLE001 - must not pass through C++
                self.error = error
                return 0
            return self.buffers[tensor_name].pointer

        def reallocate_output_async(
            self, tensor_name: str, memory_: int, size: int, alignment: int, stream: int
        ) -> int:
            del stream
            return self.reallocate_output(tensor_name, memory_, size, alignment)

        def notify_shape(self, tensor_name: str, shape: Any) -> None:
            self.shapes[tensor_name] = tuple(int(d) for d in shape)

    return OutputAllocator()
