"""A run with everything set: the cheapest way to launch an engine again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.backends.device_array import DeviceArray
from trtconv.backends.execution import Execution

if TYPE_CHECKING:
    from trtconv.backends.cuda_memory import CudaMemory


class Prepared:
    """Launches an engine on inputs that lie in its buffers; belongs to the thread that made it.

    `prepared()` only enqueues; `outputs()` are on the device, `synchronize()` waits. Another run in the same thread
    with other shapes or buffers makes it invalid, except for a CUDA graph, which keeps its own addresses.
    """

    def __init__(self, execution: Execution, *, cuda_graph: bool) -> None:
        self._execution = execution
        self.stream: int = execution.stream
        self.memory: CudaMemory = execution.memory
        self._graph = execution.capture() if cuda_graph else None
        self._launch = self._graph.launch if self._graph else execution.enqueue

    def __call__(self) -> None:
        """Launch."""
        self._launch()

    def outputs(self) -> dict[str, DeviceArray]:
        """The outputs on the device, in stream order."""
        return {t.name: self._execution.output(t) for t in self._execution.outputs}

    def synchronize(self) -> None:
        """Wait for what was launched."""
        self.memory.synchronize(self.stream)
