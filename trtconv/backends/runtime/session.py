"""Running an engine: NumPy in and out, or GPU tensors without copies; one execution context per thread."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, cast, overload

from trtconv.backends.cuda.array_interface import import_array_interface
from trtconv.backends.cuda.device_array import DeviceArray
from trtconv.backends.cuda.dlpack import Imported, import_cuda
from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.cuda.memory import CudaMemory, open_cuda_memory
from trtconv.backends.protocol import Capabilities, Profile
from trtconv.backends.runtime.execution import Execution
from trtconv.backends.runtime.prepared import Prepared
from trtconv.backends.tensorrt.admission import AdmittedEngine, deserialize_engine
from trtconv.backends.tensorrt.debug_tensors import listen, make_debug_listener
from trtconv.backends.tensorrt.engine_io import as_input, engine_profiles, engine_tensors, require_inputs, shape_of
from trtconv.backends.tensorrt.layers import LayerInfo, make_profiler, read_layers, with_times
from trtconv.backends.tensorrt.messages import logger_of
from trtconv.core.dtypes import DType
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_GRAPHS = 16


def open_session(
    trt: Any, capabilities: Capabilities, admitted: AdmittedEngine, gpu: Gpu, warnings: tuple[str, ...]
) -> EngineSession:
    """Deserialise an engine on a GPU. Raises TrtconvError with TensorRT's words when it refuses."""
    manifest = admitted.file.manifest
    memory = open_cuda_memory(gpu.index)
    with memory.current():
        deserialized = deserialize_engine(trt, capabilities, admitted)
    declared = {s.name: s.dtype for s in manifest.outputs} if manifest else {}
    warnings = (*warnings, *deserialized.warnings)
    return EngineSession(
        trt, (deserialized.runtime, deserialized.engine), memory, f"{capabilities} on {gpu.name}", declared, warnings
    )


class EngineSession:
    """An engine on the GPU. See `EngineRunner`.

    `session(x=array)` runs it on NumPy arrays, or on anything that NumPy can read, and gives NumPy arrays; when every
    input is a CUDA tensor (DLPack, `__cuda_array_interface__`) it gives `DeviceArray`s and copies nothing. Each thread
    gets its own execution context. With `cuda_graph` a shape is captured at its second call and replayed from then on.
    """

    def __init__(
        self,
        trt: Any,
        loaded: tuple[Any, Any],
        memory: CudaMemory,
        version: str,
        declared: Mapping[str, DType],
        warnings: tuple[str, ...] = (),
    ) -> None:
        self._trt, self._memory, self._declared = trt, memory, declared
        self._runtime, self._engine = loaded
        self._logger = logger_of(trt)
        self._tensors = engine_tensors(trt, self._engine)
        self.profiles: tuple[Profile, ...] = engine_profiles(self._engine, self._tensors)
        self.inputs = tuple(t for t in self._tensors if t.is_input)
        self.outputs = tuple(t for t in self._tensors if not t.is_input)
        self._device_inputs = tuple(t for t in self.inputs if not t.host)
        self._host_inputs = any(t.host for t in self.inputs)
        self.version = f"{version}, {memory.name}"
        self.warnings: tuple[str, ...] = tuple(dict.fromkeys(warnings))
        self.cuda_graph = False
        self._local = threading.local()
        # Weak, so that the context of a thread goes with the thread.
        self._made: weakref.WeakSet[Prepared] = weakref.WeakSet()
        self._lock = threading.Lock()

    @property
    def device_memory_bytes(self) -> int:
        """Scratch memory of one execution context in bytes, over all profiles; the weights are not in it."""
        name = "device_memory_size_v2" if hasattr(self._engine, "device_memory_size_v2") else "device_memory_size"
        return int(getattr(self._engine, name))

    def _make(self, *, cuda_graph: bool = False) -> Prepared:
        """A new execution context. TensorRT makes them one after another."""
        if self._engine is None:
            raise InvalidRequestError("the engine is closed", hint="open it again with trtconv.load")
        with self._logger.collect() as messages, self._lock:
            try:
                execution = Execution(self._trt, self._engine, self._tensors, self.profiles, self._memory)
            except TrtconvError as error:
                raise _with(error, messages.errors) from error
            self._warn(messages.warnings)
            lane = Prepared(execution, cuda_graph=cuda_graph)
            self._made.add(lane)
            return lane

    def _lane(self, values: Mapping[str, object]) -> Prepared:
        """What runs these shapes in this thread: its own context, or a context with a CUDA graph for these shapes."""
        local = self._local
        if getattr(local, "main", None) is None:
            local.main, local.graphs = self._make(), {}
        if not self.cuda_graph:
            return cast("Prepared", local.main)
        key = tuple(shape_of(values[t.name]) for t in self.inputs)
        if key not in local.graphs:
            local.graphs[key] = None
        elif local.graphs[key] is None and sum(g is not None for g in local.graphs.values()) < MOST_GRAPHS:
            local.graphs[key] = self._make(cuda_graph=True)
        return cast("Prepared", local.graphs[key] or local.main)

    @overload
    def __call__(self, inputs: Mapping[str, Array], /) -> dict[str, Array]: ...

    @overload
    def __call__(self, inputs: Mapping[str, object] | None = None, /, **named: object) -> dict[str, Any]: ...

    def __call__(self, inputs: Mapping[str, object] | None = None, /, **named: object) -> dict[str, Any]:
        """Run once; see the class. Raises InvalidRequestError for inputs that do not fit, TrtconvError otherwise."""
        if inputs is not None and not isinstance(inputs, Mapping):
            kind, first_name = type(inputs).__name__, self.inputs[0].name if self.inputs else "x"
            raise InvalidRequestError(
                f"inputs are given by name, got {kind}", hint=f"call it with {first_name}=array or a dictionary"
            )
        values = {**(inputs or {}), **named}
        require_inputs(values, self.inputs)
        # Arrays of an earlier run, let go when the caller's own context is current again.
        released: list[object] = []
        with self._memory.current():
            lane = self._lane(values)
            imported = {t.name: self._imported(values[t.name], lane) for t in self._device_inputs}
            with self._heard():
                if imported and all(imported.values()):
                    return dict(self._run_device(lane, values, cast("dict[str, Imported]", imported), released))
                self._put(lane.execution, {t.name: as_input(values[t.name], t) for t in self.inputs})
                lane()
                return self._collect(lane.execution)

    @contextmanager
    def _heard(self) -> Iterator[None]:
        """What TensorRT says in here: errors become details of the error that is raised, warnings the session's.

        TensorRT has one logger for the process, so a warning may be due to another engine that runs meanwhile.
        """
        mark = self._logger.mark()
        try:
            yield
        except TrtconvError as error:
            raise _with(error, self._logger.since(mark).errors) from error.__cause__ or error
        finally:
            if self._logger.mark() != mark:
                self._warn(self._logger.since(mark).warnings)

    def _warn(self, warnings: tuple[str, ...]) -> None:
        if warnings:
            self.warnings = tuple(dict.fromkeys((*self.warnings, *warnings)))

    def _imported(self, value: object, lane: Prepared) -> Imported | None:
        """A tensor that is on the GPU, with the lane made to wait for what fills it; None for anything else."""
        stream = lane.stream.handle
        if isinstance(value, DeviceArray):
            if value.stream.handle != stream:
                lane.execution.order.wait(stream, value.stream.handle)
            return Imported(value.pointer, value.shape, value.dtype, value.device, value)
        return import_cuda(value, stream) or import_array_interface(value, stream, self._memory)

    def prepare(self, inputs: Mapping[str, object], *, cuda_graph: bool = False) -> Prepared:
        """A context of its own with these inputs in its buffers: what launches the engine with next to no cost.

        With `cuda_graph` launches replay a captured graph. Raises UnsupportedError when a graph cannot hold the run.
        """
        require_inputs(inputs, self.inputs)
        with self._memory.current(), self._heard():
            lane = self._make(cuda_graph=cuda_graph)
            self._put(lane.execution, {t.name: as_input(inputs[t.name], t) for t in self.inputs})
            if cuda_graph and not lane.execution.capturable:
                raise UnsupportedError(
                    "a CUDA graph cannot hold this engine: an output's size depends on data, or a shape is an input",
                    hint="run it without a CUDA graph",
                )
            lane()
            lane.synchronize()
        if cuda_graph and lane.graph is None:
            raise UnsupportedError(
                f"a CUDA graph cannot hold this engine: {lane.no_graph}", hint="run it without a CUDA graph"
            )
        return lane

    def _put(self, execution: Execution, arrays: Mapping[str, Array]) -> None:
        """Set the shapes and copy the inputs to the device."""
        host = {t.name: arrays[t.name] for t in self.inputs if t.host}
        execution.set_shapes({n: tuple(a.shape) for n, a in arrays.items()}, host)
        for name, array in arrays.items():
            if name not in host:
                buffer = execution.buffer(name, array.nbytes)
                execution.point_input(name, buffer.pointer)
                self._memory.upload(buffer.pointer, array, execution.stream)

    def _run_device(
        self, lane: Prepared, values: Mapping[str, object], imported: Mapping[str, Imported], released: list[object]
    ) -> dict[str, DeviceArray]:
        execution, own = lane.execution, lane is self._local.main
        for tensor in self._device_inputs:
            kind = imported[tensor.name].dtype
            if kind is not tensor.dtype and kind != tensor.dtype:
                raise InvalidRequestError(
                    f"input '{tensor.name}' is {kind.name}, the engine takes {tensor.dtype.name}",
                    hint="convert the tensor on the GPU first",
                )
        shapes = {name: source.shape for name, source in imported.items()}
        host = {t.name: as_input(values[t.name], t) for t in self.inputs if t.host} if self._host_inputs else {}
        if host:
            shapes |= {name: tuple(array.shape) for name, array in host.items()}
        execution.set_shapes(shapes, host)
        for name, source in imported.items():
            pointer = source.pointer
            # A graph reads from where it was captured, and an empty tensor's null pointer is refused by TensorRT.
            if not own or not pointer:
                pointer = execution.buffer(name, source.nbytes).pointer
                self._memory.copy(pointer, source.pointer, source.nbytes, execution.stream)
            execution.point_input(name, pointer)
        lane()
        released += execution.retain(tuple([s.pointer for s in imported.values()]), tuple(imported.values()))
        return lane.outputs()

    def _collect(self, execution: Execution) -> dict[str, Array]:
        import numpy as np

        results: dict[str, Array] = {}
        # Sizes that depend on data are known only when the run is over.
        if not execution.capturable:
            self._memory.synchronize(execution.stream)
        for tensor in self.outputs:
            if tensor.host:
                results[tensor.name] = execution.host_output(tensor.name).copy()
                continue
            output = execution.output(tensor)
            results[tensor.name] = np.empty(output.shape, tensor.dtype.numpy())
            self._memory.download(results[tensor.name], output.pointer, execution.stream)
        self._memory.synchronize(execution.stream)
        return {n: self._as_declared(n, a) for n, a in results.items()}

    def _as_declared(self, name: str, array: Array) -> Array:
        """TensorRT 8.6 gives int32 where the model says int64; callers get what the model says."""
        declared = self._declared.get(name)
        return array if declared is None or declared.numpy() == array.dtype else array.astype(declared.numpy())

    def watched(self, inputs: Mapping[str, object], names: Sequence[str]) -> dict[str, Array]:
        """Run once; the outputs, and those of the named inner tensors that the engine gives out, as NumPy arrays.

        Before TensorRT 10 these are outputs (`debug_outputs`), later also debug tensors (`debug_tensors`).
        """
        require_inputs(inputs, self.inputs)
        with self._memory.current(), self._heard():
            return self._watched(inputs, names)

    def _watched(self, inputs: Mapping[str, object], names: Sequence[str]) -> dict[str, Array]:
        lane = self._make()
        listener = None
        if hasattr(self._engine, "is_debug_tensor"):
            listener = make_debug_listener(self._trt, self._memory)
            listen(lane.execution.context, listener, self._engine, names)
        self._put(lane.execution, {t.name: as_input(inputs[t.name], t) for t in self.inputs})
        try:
            lane()
            outputs = self._collect(lane.execution)
        except TrtconvError:
            if listener is not None and listener.error is not None:
                raise TrtconvError("an inner tensor cannot be read while the engine runs") from listener.error
            raise
        finally:
            lane.close()
        return {**(listener.arrays if listener is not None else {}), **outputs}

    def layers(self, runs: int = 0) -> tuple[LayerInfo, ...]:
        """The engine's layers; with `runs` each has its mean seconds over that many runs at profile 0's opt."""
        if not runs or any(t.host for t in self.inputs):
            return read_layers(self._trt, self._engine)
        import numpy as np

        opt = {t.name: np.ones(self.profiles[0][t.name][1], t.dtype.numpy()) for t in self.inputs}
        lane = self.prepare(opt)
        context = lane.execution.context
        profiler = make_profiler(self._trt)
        context.profiler = profiler
        for _ in range(runs):
            lane()
            lane.synchronize()
        seconds = {name: total / runs for name, total in profiler.seconds.items()}
        layers = with_times(read_layers(self._trt, self._engine, context), seconds)
        lane.close()
        return layers

    def close(self) -> None:
        """Free contexts, then the engine, then the runtime: the order that TensorRT demands."""
        with self._memory.current():
            for lane in tuple(self._made):
                lane.close()
            self._local = threading.local()
            self._engine = None
            self._runtime = None


def _with(error: TrtconvError, lines: tuple[str, ...]) -> TrtconvError:
    """The same error with TensorRT's own words."""
    details = tuple(dict.fromkeys((*error.details, *lines[:8])))
    return type(error)(error.message, hint=error.hint, details=details, where=error.where)
