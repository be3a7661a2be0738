"""One execution context with its stream and buffers: what one thread needs to run an engine.

Shapes and addresses are set only when they change, so that a call with the shapes of the one before costs little
more than the launch itself.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.context import CudaGraph, RetainedSet, StreamOrder
from trtconv.backends.cuda.device_array import DeviceArray
from trtconv.backends.protocol import EngineTensor, Profile, Shape
from trtconv.backends.runtime.output_allocator import make_output_allocator
from trtconv.backends.tensorrt.engine_io import choose_profile
from trtconv.core.errors import TrtconvError

if TYPE_CHECKING:
    import numpy as np

    from trtconv.backends.cuda.memory import CudaMemory, DeviceBuffer

    Array = np.ndarray[Any, np.dtype[Any]]

_ALIGN = 512


class Execution:
    """Not for use by two threads at a time, and with the context current (`CudaMemory.current`).

    `inputs` and `outputs` are the engine's tensors.
    """

    def __init__(
        self,
        trt: Any,
        engine: Any,
        tensors: tuple[EngineTensor, ...],
        profiles: tuple[Profile, ...],
        memory: CudaMemory,
    ) -> None:
        self.context = engine.create_execution_context()
        if self.context is None:
            raise TrtconvError(
                "TensorRT gives no execution context for the engine",
                hint="its scratch memory may not fit beside what else uses the GPU: lower --workspace and build again",
            )
        self.inputs = tuple(t for t in tensors if t.is_input)
        self.outputs = tuple(t for t in tensors if not t.is_input)
        self.memory = memory
        self.stream = memory.create_stream()
        self._profiles = profiles
        self._buffers: dict[str, DeviceBuffer] = {}
        self._host: dict[str, Array] = {}
        self._addresses: dict[str, int] = {}
        self._shapes: dict[str, Shape] = {}
        self._output_shapes: dict[str, Shape] = {}
        self._profile = 0
        self._allocator = make_output_allocator(trt, memory)
        self._open: tuple[str, ...] = ()
        self._given: dict[str, DeviceArray] = {}
        self._retained = (RetainedSet(memory.driver), RetainedSet(memory.driver))
        self._read: tuple[int, ...] = ()
        self.order = StreamOrder(memory.driver)

    def set_shapes(self, shapes: Mapping[str, Shape], host: Mapping[str, Array]) -> bool:
        """Choose the profile and set every input's shape and the host inputs' values; True when something changed.

        Raises InvalidRequestError for shapes outside every profile.
        """
        same_values = all(n in self._host and (self._host[n] == v).all() for n, v in host.items())
        if shapes == self._shapes and same_values:
            return False
        index = choose_profile(self._profiles, {n: s for n, s in shapes.items() if n not in host})
        if index != self._profile or not self._shapes:
            if not self.context.set_optimization_profile_async(index, self.stream.handle):
                raise TrtconvError(f"TensorRT does not switch to profile {index}")
            self.memory.synchronize(self.stream)
            self._profile = index
            self._addresses.clear()
        for tensor in self.inputs:
            if tensor.name in host:
                self._host[tensor.name] = host[tensor.name].copy()
                self._point(tensor.name, int(self._host[tensor.name].ctypes.data))
            if not self.context.set_input_shape(tensor.name, shapes[tensor.name]):
                raise TrtconvError(f"TensorRT refuses the shape {list(shapes[tensor.name])} of '{tensor.name}'")
        missing = self.context.infer_shapes()
        if missing:
            raise TrtconvError(f"the engine still lacks the shapes of {', '.join(missing)}")
        self._shapes = dict(shapes)
        self._given = {}
        self._place_outputs()
        return True

    def _place_outputs(self) -> None:
        """A buffer for every output whose shape is known now, the allocator for the others."""
        import numpy as np

        unknown = []
        for tensor in self.outputs:
            shape = tuple(int(d) for d in self.context.get_tensor_shape(tensor.name))
            self._output_shapes[tensor.name] = shape
            # After a run 8.6 answers with the size that the last data had; what was open once stays open.
            if -1 in shape or tensor.name in self._open:
                unknown.append(tensor.name)
                self.context.set_output_allocator(tensor.name, self._allocator)
            elif tensor.host:
                self._host[tensor.name] = np.zeros(shape, tensor.dtype.numpy())
                self._point(tensor.name, int(self._host[tensor.name].ctypes.data))
            else:
                self._point(tensor.name, self.buffer(tensor.name, _nbytes(shape, tensor)).pointer)
        self._open = tuple(unknown)

    def buffer(self, name: str, size: int) -> DeviceBuffer:
        """The device buffer of a tensor, grown when it is too small."""
        held = self._buffers.get(name)
        if held is None or held.size < size:
            rounded = (size + _ALIGN - 1) // _ALIGN * _ALIGN or _ALIGN
            self._buffers.pop(name, None)
            held = self._buffers[name] = self.memory.allocate(rounded)
        return held

    def point_input(self, name: str, pointer: int) -> None:
        """Let an input be read from device memory at `pointer` (zero-copy)."""
        self._point(name, pointer)

    def _point(self, name: str, pointer: int) -> None:
        if self._addresses.get(name) != pointer:
            if not self.context.set_tensor_address(name, pointer):
                raise TrtconvError(f"TensorRT refuses the address of '{name}'")
            self._addresses[name] = pointer

    def retain(self, pointers: tuple[int, ...], owners: tuple[object, ...]) -> tuple[object, ...]:
        """Keep what the launched run reads until it is over: a caller may drop a tensor right after the call.

        The same addresses as before are kept alive by the owners that are held already. What is held no longer is
        returned: an array of pycuda's can be freed only where its own context is current.
        """
        if pointers == self._read:
            return ()
        older, newer = self._retained
        # Recorded only now, behind the last run that read them.
        newer.mark(self.stream.handle)
        released = older.replace(owners)
        self._retained, self._read = (newer, older), pointers
        return released

    @property
    def capturable(self) -> bool:
        """True when a CUDA graph can hold a run: no output's size depends on data, no tensor lives in host memory."""
        return not self._open and not any(t.host for t in (*self.inputs, *self.outputs))

    def enqueue(self) -> None:
        """Launch the engine in this execution's stream."""
        if not self.context.execute_async_v3(self.stream.handle):
            if self._allocator.error is not None:
                error, self._allocator.error = self._allocator.error, None
                raise error
            raise TrtconvError("TensorRT could not run the engine")

    def capture(self) -> CudaGraph:
        """A CUDA graph of one run at the current shapes and addresses; the engine has to have run once there."""
        with CudaGraph(self.memory.driver, self.stream.handle) as graph:
            self.enqueue()
        return graph

    def device_outputs(self) -> dict[str, DeviceArray]:
        """All outputs as they lie on the device after a run."""
        if self._open:
            return {t.name: self.output(t) for t in self.outputs}
        if not self._given:
            self._given = {t.name: self.output(t) for t in self.outputs}
        return dict(self._given)

    def output(self, tensor: EngineTensor) -> DeviceArray:
        """An output as it lies on the device after a run."""
        if tensor.name in self._open:
            shape, held = self._allocator.shapes[tensor.name], self._allocator.buffers[tensor.name]
        else:
            shape, held = self._output_shapes[tensor.name], self._buffers[tensor.name]
        return DeviceArray(held.pointer, shape, tensor.dtype, self.stream, held, self.memory)

    def host_output(self, name: str) -> Array:
        """An output that lives in host memory."""
        return self._host[name]

    def __del__(self) -> None:
        # The context's memory must not go while the GPU still works in it.
        with contextlib.suppress(Exception):
            self.close()

    def close(self) -> None:
        """Free context and buffers."""
        if self.context is None:
            return
        with self.memory.current():
            self.memory.synchronize(self.stream)
            self.context = None
            self._buffers.clear()
            self._allocator.buffers.clear()


def _nbytes(shape: Shape, tensor: EngineTensor) -> int:
    return math.prod(shape) * tensor.dtype.size
