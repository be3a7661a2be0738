"""Running an engine: NumPy in and out, or GPU tensors without copies; one execution context per thread."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda_context import CudaGraph, open_driver
from trtconv.backends.cuda_driver import Gpu
from trtconv.backends.cuda_memory import CudaMemory, open_cuda_memory
from trtconv.backends.device_array import DeviceArray
from trtconv.backends.dlpack import Imported, import_cuda
from trtconv.backends.engine_io import as_input, engine_profiles, engine_tensors, require_inputs
from trtconv.backends.execution import Execution
from trtconv.backends.layers import LayerInfo, make_profiler, read_layers, with_times
from trtconv.backends.manifest import EngineManifest
from trtconv.backends.messages import logger_of
from trtconv.backends.plugin_loading import load_plugins
from trtconv.backends.prepared import Prepared
from trtconv.backends.protocol import Capabilities, EngineTensor, Profile, Shape
from trtconv.core.dtypes import DType
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]


def open_session(
    trt: Any, capabilities: Capabilities, engine: Path, manifest: EngineManifest | None, gpu: Gpu,
    plugins: tuple[Path, ...], warnings: tuple[str, ...],
) -> EngineSession:  # fmt: skip
    """Deserialize an engine. Raises TrtconvError with TensorRT's words when it refuses."""
    memory = open_cuda_memory(gpu.index)
    memory.activate()
    logger = logger_of(trt)
    with logger.collect() as messages:
        load_plugins(trt, logger, plugins)
        runtime = trt.Runtime(logger)
        if manifest is not None and manifest.options.get("version_compatible"):
            runtime.engine_host_code_allowed = True
        loaded = runtime.deserialize_cuda_engine(engine.read_bytes())
        if loaded is None:
            raise TrtconvError(
                f"{capabilities} refuses '{engine}'", details=messages.errors[:8], hint="build it again on this machine"
            )
    declared = {s.name: s.dtype for s in manifest.outputs} if manifest else {}
    return EngineSession(trt, (runtime, loaded), memory, f"{capabilities} on {gpu.name}", declared, warnings)


class EngineSession:
    """An engine on the GPU. See `EngineRunner`.

    `session(x=array)` runs it on NumPy arrays, or on anything that NumPy can read, and gives NumPy arrays; when every
    input is a CUDA tensor (DLPack) it gives `DeviceArray`s and copies nothing. Each thread gets its own execution
    context. With `cuda_graph` a shape is captured at its second call and replayed from then on.
    """

    def __init__(
        self, trt: Any, loaded: tuple[Any, Any], memory: CudaMemory, version: str, declared: Mapping[str, DType],
        warnings: tuple[str, ...] = (), driver: Any = None,
    ) -> None:  # fmt: skip
        self._trt, self._memory, self._declared = trt, memory, declared
        self._runtime, self._engine = loaded
        self._driver = driver if driver is not None else open_driver()
        self._tensors = engine_tensors(trt, self._engine)
        self.profiles: tuple[Profile, ...] = engine_profiles(self._engine, self._tensors)
        self.inputs = tuple(t for t in self._tensors if t.is_input)
        self.outputs = tuple(t for t in self._tensors if not t.is_input)
        self.version = f"{version}, {memory.name}"
        self.warnings = warnings
        self.cuda_graph = False
        self._local = threading.local()
        self._executions: list[Execution] = []
        self._lock = threading.Lock()

    @property
    def execution(self) -> Execution:
        """The calling thread's execution context, made at its first use."""
        found: Execution | None = getattr(self._local, "execution", None)
        if found is None:
            if self._engine is None:
                raise InvalidRequestError("the engine is closed")
            with logger_of(self._trt).collect() as messages, self._lock:
                try:
                    found = Execution(self._trt, self._engine, self._tensors, self.profiles, self._memory, self._driver)
                except TrtconvError as error:
                    raise _with(error, messages.errors) from error
                self._executions.append(found)
            self._local.execution = found
            self._local.graphs = {}
        return found

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> dict[str, Any]:
        """Run once; see the class. Raises InvalidRequestError for inputs that do not fit, TrtconvError otherwise."""
        given = {**(inputs or {}), **named}
        require_inputs(given, self.inputs)
        execution = self.execution
        self._memory.activate()
        imported = {t.name: import_cuda(given[t.name], execution.stream) for t in self.inputs if not t.host}
        on_device = {n: i for n, i in imported.items() if i is not None}
        if on_device and len(on_device) == len(imported):
            return dict(self._run_device(execution, given, on_device))
        return self._run_host(execution, given)

    def prepare(self, inputs: Mapping[str, Any], *, cuda_graph: bool = False) -> Prepared:
        """Put these inputs into the engine's buffers, run once, and give what launches it again with next to no cost.

        With `cuda_graph` the launch is captured. Raises UnsupportedError when a graph cannot hold this engine's run.
        """
        require_inputs(inputs, self.inputs)
        execution = self.execution
        self._memory.activate()
        self._run_host(execution, inputs)
        if cuda_graph and not execution.capturable:
            raise UnsupportedError(
                "a CUDA graph cannot hold this engine: an output's size depends on data, or a shape is an input",
                hint="run it without --cuda-graph",
            )
        return Prepared(execution, cuda_graph=cuda_graph)

    def _run_host(self, execution: Execution, given: Mapping[str, Any]) -> dict[str, Array]:
        arrays = {t.name: as_input(given[t.name], t) for t in self.inputs}
        shapes = {n: tuple(a.shape) for n, a in arrays.items()}
        host = {t.name: arrays[t.name] for t in self.inputs if t.host}
        with logger_of(self._trt).collect() as messages:
            try:
                execution.set_shapes(shapes, host)
                for name, array in arrays.items():
                    if name not in host:
                        buffer = execution.buffer(name, array.nbytes)
                        execution.point_input(name, buffer.pointer)
                        self._memory.upload(buffer.pointer, array, execution.stream)
                self._launch(execution, shapes)
                return self._collect(execution)
            except TrtconvError as error:
                raise _with(error, messages.errors) from error

    def _run_device(
        self, execution: Execution, given: Mapping[str, Any], imported: Mapping[str, Imported]
    ) -> dict[str, DeviceArray]:
        for tensor in (t for t in self.inputs if not t.host):
            kind = imported[tensor.name].dtype
            if kind != tensor.dtype:
                raise InvalidRequestError(
                    f"input '{tensor.name}' is {kind.name}, the engine takes {tensor.dtype.name}",
                    hint="convert the tensor on the GPU first",
                )
        host = {t.name: as_input(given[t.name], t) for t in self.inputs if t.host}
        shapes = {n: i.shape for n, i in imported.items()} | {n: tuple(a.shape) for n, a in host.items()}
        execution.set_shapes(shapes, host)
        for name, source in imported.items():
            # An empty tensor's pointer is null, which TensorRT refuses.
            pointer = source.pointer or execution.buffer(name, 1).pointer
            if self.cuda_graph and source.pointer:
                target = execution.buffer(name, _size(source))
                self._memory.copy(target.pointer, source.pointer, _size(source), execution.stream)
                pointer = target.pointer
            execution.point_input(name, pointer)
        self._launch(execution, shapes)
        execution.retain(tuple(imported.values()))
        return {t.name: execution.output(t) for t in self.outputs}

    def _launch(self, execution: Execution, shapes: Mapping[str, Shape]) -> None:
        """Launch, by a CUDA graph where one was captured for these shapes at the present addresses."""
        if not self.cuda_graph or not execution.capturable:
            execution.enqueue()
            return
        graphs: dict[Any, CudaGraph | None] = self._local.graphs
        key = (tuple(shapes.items()), execution.addresses())
        if key not in graphs:
            graphs[key] = None
            execution.enqueue()
            return
        graph = graphs[key]
        if graph is None:
            graph = graphs[key] = execution.capture()
        graph.launch()

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
            found = execution.output(tensor)
            results[tensor.name] = np.empty(found.shape, tensor.dtype.numpy())
            self._memory.download(results[tensor.name], found.pointer, execution.stream)
        self._memory.synchronize(execution.stream)
        return {n: self._as_declared(n, a) for n, a in results.items()}

    def _as_declared(self, name: str, array: Array) -> Array:
        """TensorRT 8.6 gives int32 where the model says int64; callers get what the model says."""
        wanted = self._declared.get(name)
        return array if wanted is None or wanted.numpy() == array.dtype else array.astype(wanted.numpy())

    def layers(self, runs: int = 0) -> tuple[LayerInfo, ...]:
        """The engine's layers; with `runs` each has its mean seconds over that many runs at profile 0's opt."""
        if not runs or any(t.host for t in self.inputs):
            return read_layers(self._trt, self._engine)
        execution = self.execution
        inputs = {t.name: self._ones(t) for t in self.inputs}
        self(inputs)
        profiler = make_profiler(self._trt)
        execution.context.profiler = profiler
        try:
            for _ in range(runs):
                execution.enqueue()
                self._memory.synchronize(execution.stream)
        finally:
            execution.context.profiler = None
        seconds = {name: total / runs for name, total in profiler.seconds.items()}
        return with_times(read_layers(self._trt, self._engine, execution.context), seconds)

    def _ones(self, tensor: EngineTensor) -> Array:
        import numpy as np

        return np.ones(self.profiles[0][tensor.name][1], tensor.dtype.numpy())

    @property
    def engine(self) -> Any:
        """The `ICudaEngine`, for inspection."""
        return self._engine

    def close(self) -> None:
        """Free contexts, then the engine, then the runtime: the order that TensorRT demands."""
        for execution in self._executions:
            execution.close()
        self._executions.clear()
        self._local = threading.local()
        self._engine = None
        self._runtime = None


def _size(source: Imported) -> int:
    count = source.dtype.size
    for dim in source.shape:
        count *= dim
    return count


def _with(error: TrtconvError, lines: tuple[str, ...]) -> TrtconvError:
    """The same error with TensorRT's own words."""
    details = (*error.details, *lines[:8])
    return type(error)(error.message, hint=error.hint, details=details, where=error.where)
