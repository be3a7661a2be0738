"""An execution with the way in which it is launched: again and again by TensorRT, or as a CUDA graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trtconv.backends.cuda.context import CudaGraph
from trtconv.backends.cuda.device_array import DeviceArray
from trtconv.backends.runtime.execution import Execution
from trtconv.core.errors import TrtconvError

if TYPE_CHECKING:
    from trtconv.backends.cuda.memory import CudaMemory, Stream, StreamTimer


class Prepared:
    """`prepared()` launches the engine on the inputs in its buffers and returns at once.

    `outputs()` lie on the device in stream order, `synchronize()` waits. With `cuda_graph` the first launch is an
    ordinary one (TensorRT prepares itself for new shapes then), after which the work is captured and replayed. A
    graph needs an execution whose shapes never change again: TensorRT bakes its context's state into it. `no_graph`
    says why there is none where one was wanted.
    """

    def __init__(self, execution: Execution, *, cuda_graph: bool) -> None:
        self.execution = execution
        self.stream: Stream = execution.stream
        self.memory: CudaMemory = execution.memory
        self._wants_graph = cuda_graph
        self.graph: CudaGraph | None = None
        self.no_graph = ""

    def __call__(self) -> None:
        """Launch."""
        with self.memory.current():
            if self.graph is not None:
                self.graph.launch()
                return
            self.execution.enqueue()
            if self._wants_graph and self.execution.capturable:
                self.synchronize()
                self._capture()

    def _capture(self) -> None:
        """Capture, or go on without a graph: 8.6 cannot launch a loop (an LSTM's, say) into one."""
        self._wants_graph = False
        try:
            self.graph = self.execution.capture()
        except TrtconvError as error:
            self.no_graph = error.message

    def outputs(self) -> dict[str, DeviceArray]:
        """The outputs on the device."""
        return self.execution.device_outputs()

    def synchronize(self) -> None:
        """Wait for what was launched."""
        self.memory.synchronize(self.stream)

    def interval(self) -> StreamTimer:
        """A stopwatch on the stream in which the engine is launched."""
        return self.memory.interval(self.stream)

    def close(self) -> None:
        """Free the graph, then the execution."""
        if self.graph is not None:
            self.graph.close()
            self.graph = None
        self.execution.close()
