"""Inner tensors of an engine, given out while it runs: TensorRT 10's debug tensors, and outputs before it.

Debug tensors leave the engine's inputs and outputs as they are, where 8.6 needs extra outputs. A tensor is marked in
the network, switched on in an execution context, and handed to a listener in stream order.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.memory import CudaMemory, ForeignStream
from trtconv.backends.tensorrt.engine_io import numpy_type

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def mark_debug(network: Any, names: set[str]) -> tuple[str, ...]:
    """Mark tensors that layers make as debug tensors; returns those that were taken. Shapes are left out."""
    tensors = [t for t in _inner_tensors(network, names) if not t.is_shape_tensor]
    return tuple(str(t.name) for t in tensors if network.mark_debug(t))


def mark_outputs(network: Any, names: set[str]) -> tuple[str, ...]:
    """Make inner tensors outputs too, before TensorRT 10. Returns those that were found."""
    tensors = [t for t in _inner_tensors(network, names) if t.is_execution_tensor]
    for tensor in tensors:
        network.mark_output(tensor)
    return tuple(str(t.name) for t in tensors)


def _inner_tensors(network: Any, names: set[str]) -> Iterator[Any]:
    """The tensors of these names that layers make and that are no outputs."""
    outputs = {network.get_output(i).name for i in range(network.num_outputs)}
    for index in range(network.num_layers):
        layer = network.get_layer(index)
        for number in range(layer.num_outputs):
            tensor = layer.get_output(number)
            if tensor is not None and tensor.name in names - outputs:
                yield tensor


def make_debug_listener(trt: Any, memory: CudaMemory) -> Any:
    """An IDebugListener that copies what it is given to `arrays` by name; `error` holds what went wrong inside."""

    class DebugListener(trt.IDebugListener):  # type: ignore[misc]
        """Called from C++ while the engine is enqueued: exceptions are kept, not raised."""

        def __init__(self) -> None:
            trt.IDebugListener.__init__(self)
            self.arrays: dict[str, Array] = {}
            self.error: Exception | None = None

        def process_debug_tensor(self, addr: Any, location: Any, type: Any, shape: Any, name: str, stream: int) -> bool:
            try:
                self.arrays[str(name)] = self._copied(_address(addr), location, type, tuple(shape), int(stream))
            except Exception as error:  # noqa: BLE001 - must not pass through C++
                self.error = error
                return False
            return True

        def _copied(self, pointer: int, location: Any, kind: Any, shape: tuple[int, ...], stream: int) -> Array:
            import numpy as np

            array: Array = np.empty(shape, numpy_type(kind, "a debug tensor"))
            if location == trt.TensorLocation.HOST:
                ctypes.memmove(array.ctypes.data, pointer, array.nbytes)
            elif array.nbytes:
                # The next layer may write over it as soon as this returns.
                origin = ForeignStream(stream)
                memory.download(array, pointer, origin)
                memory.synchronize(origin)
            return array

    return DebugListener()


def listen(context: Any, listener: Any, engine: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Give a context the listener and switch on those tensors that the engine was built with; returns their names."""
    marked = tuple(n for n in names if engine.is_debug_tensor(n))
    context.set_debug_listener(listener)
    return tuple(n for n in marked if context.set_tensor_debug_state(n, True))


def _address(capsule: Any) -> int:
    """The pointer in the capsule that the bindings hand over."""
    if isinstance(capsule, int):
        return capsule
    of, name_of = ctypes.pythonapi.PyCapsule_GetPointer, ctypes.pythonapi.PyCapsule_GetName
    of.restype, of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return int(of(capsule, name_of(capsule)) or 0)
