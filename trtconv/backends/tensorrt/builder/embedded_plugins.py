"""Plugins whose kernels go into the engine as PTX, by TensorRT's `tensorrt.plugin` (10.9 and later).

The parser finds such a plugin in the registry, asks for its outputs' shapes and for a kernel, its grid and its scalar
arguments, and the engine that comes out needs neither Python nor a plugin library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from inspect import Parameter, Signature
from types import GenericAlias
from typing import Any

from trtconv.backends.cuda.driver import Gpu, probe_cuda
from trtconv.backends.cuda.nvrtc import CompiledKernel, Nvrtc, architecture_for, compile_kernel, open_nvrtc
from trtconv.backends.protocol import EngineSettings
from trtconv.backends.tensorrt.builder.symbolic import as_expression, dims_of
from trtconv.backends.tensorrt.plugin_loading import creators
from trtconv.core.embedded import EmbeddedInput, EmbeddedPlugin, KernelSource, KernelTarget
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError

_TYPES = {"FLOAT": "float32", "HALF": "float16", "BF16": "bfloat16"}


@dataclass
class Embedding:
    """One build: for which GPU, what was compiled, and what went wrong where TensorRT only says that something did."""

    target: KernelTarget
    nvrtc: Nvrtc
    architecture: str
    compiled: dict[KernelSource, CompiledKernel] = field(default_factory=dict)
    entries: dict[str, KernelSource] = field(default_factory=dict)
    failures: list[Exception] = field(default_factory=list)

    def kernel(self, entry: str, source: KernelSource) -> CompiledKernel:
        """Compile a kernel, or give it again: TensorRT asks for each several times."""
        if source not in self.compiled:
            self.compiled[source] = compile_kernel(self.nvrtc, source, self.architecture)
        self.entries[entry] = source
        return self.compiled[source]

    def facts(self) -> dict[str, dict[str, str]]:
        """What the manifest records of each kernel, by its entry's name."""
        kernels = {entry: self.compiled[source] for entry, source in sorted(self.entries.items())}
        return {
            entry: {
                "ptx_sha256": k.sha256,
                "architecture": k.architecture,
                "nvrtc": k.nvrtc,
                "compiled_for": self.target.compute_capability,
            }
            for entry, k in kernels.items()
        }


@contextmanager
def embedded_plugins(
    trt: Any, plugins: Sequence[EmbeddedPlugin], target: KernelTarget, driver: str
) -> Iterator[Embedding]:
    """Register the plugins for a build. What went wrong in one of them is raised in place of TensorRT's own error.

    Raises MissingDependencyError without a usable NVRTC, InvalidRequestError where a library has the same plugins.
    """
    nvrtc = open_nvrtc(driver)
    embedding = Embedding(target, nvrtc, architecture_for(nvrtc, target.compute_capability))
    trtp = plugin_module(trt)
    for plugin in plugins:
        register(trt, trtp, plugin, embedding)
    try:
        yield embedding
    except TrtconvError as error:
        if embedding.failures:
            raise embedding.failures[0] from error
        raise


@contextmanager
def kernels_in_engine(
    trt: Any, settings: EngineSettings, gpu: Gpu | None
) -> Iterator[Callable[[], dict[str, dict[str, str]]]]:
    """Register the embedded plugins for a build on `gpu`; what is yielded gives the facts for the manifest."""
    if not settings.embedded or gpu is None:
        yield dict
        return
    # Such an engine runs on every GPU from compute capability 8.0 on, and so has the PTX.
    portable = str(settings.options.get("hardware_compatibility", "none")).lower() == "ampere_plus"
    target = KernelTarget("8.0" if portable else gpu.compute_capability, gpu.multiprocessors)
    with embedded_plugins(trt, settings.embedded, target, probe_cuda().driver) as embedding:
        yield embedding.facts


def plugin_module(trt: Any) -> Any:
    """`tensorrt.plugin`. Raises UnsupportedError where it cannot make plugins with kernels in the engine."""
    if not hasattr(trt, "QuickPluginCreationRequest"):
        raise UnsupportedError(
            f"{trt.__name__} {trt.__version__} cannot put plugin kernels into an engine",
            hint="TensorRT 10.9 and later can; leave embed_plugins out and use the plugin library",
        )
    return importlib.import_module(f"{trt.__name__}.plugin")


def register(trt: Any, trtp: Any, plugin: EmbeddedPlugin, embedding: Embedding) -> None:
    """Make a plugin known to TensorRT for this process, or give the one that is known this build's target."""
    namespace = getattr(trtp.op, plugin.namespace, None)
    definition = getattr(namespace, plugin.op_type, None)
    if definition is not None:
        for function in (definition.register_func, definition.aot_impl_func):
            if not isinstance(function, _Callback):
                raise InvalidRequestError(f"{plugin.namespace}::{plugin.op_type} is registered by someone else")
            function.embedding = embedding
        return
    name = f"{plugin.namespace}::{plugin.op_type}"
    if f"{name}::{plugin.version}" in creators(trt.get_plugin_registry()):
        raise InvalidRequestError(
            f"a plugin library that is loaded has {name} already", hint="leave the library or embed_plugins out"
        )
    trtp.register(name)(DescribeOutputs(trt, trtp, plugin, embedding))
    trtp.aot_impl(name)(MakeLaunch(trt, trtp, plugin, embedding))


class _Callback:
    """A function as `tensorrt.plugin` wants it: its parameters are read from the signature."""

    def __init__(self, trt: Any, trtp: Any, plugin: EmbeddedPlugin, embedding: Embedding) -> None:
        self.trt, self.trtp, self.plugin, self.embedding = trt, trtp, plugin, embedding

    def _signature(self, extra: Mapping[str, Any], result: Any) -> Signature:
        annotations: dict[str, Any] = dict.fromkeys(self.plugin.inputs, self.trtp.TensorDesc)
        annotations |= {a.name: _annotation(a.kind) for a in self.plugin.attributes} | dict(extra)
        kind = Parameter.POSITIONAL_OR_KEYWORD
        return Signature([Parameter(n, kind, annotation=a) for n, a in annotations.items()], return_annotation=result)

    def _checked(self, values: Mapping[str, Any]) -> dict[str, Any]:
        kinds = {a.name: a.kind for a in self.plugin.attributes}
        lists = {name: value.tolist() if hasattr(value, "tolist") else value for name, value in values.items()}
        single = {n for n, v in lists.items() if kinds.get(n) != "ints" and isinstance(v, list) and len(v) == 1}
        return self.plugin.checked({n: v[0] if n in single else v for n, v in lists.items()})

    def _failed(self, error: Exception) -> None:
        """TensorRT prints a callback's exception and goes on with an error of its own, so that it is kept."""
        self.embedding.failures.append(error)


class DescribeOutputs(_Callback):
    """Dims and types of the outputs."""

    def __init__(self, trt: Any, trtp: Any, plugin: EmbeddedPlugin, embedding: Embedding) -> None:
        super().__init__(trt, trtp, plugin, embedding)
        self.__signature__ = self._signature({}, GenericAlias(tuple, (trtp.TensorDesc,) * len(plugin.output_types)))

    def __call__(self, *inputs: Any, **attributes: Any) -> tuple[Any, ...]:
        """`TensorDesc`s of the outputs for those of the inputs."""
        try:
            return self._describe(inputs, self._checked(attributes))
        except Exception as error:
            self._failed(error)
            raise

    def _describe(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[Any, ...]:
        dims = [dims_of(descriptor, number) for number, descriptor in enumerate(inputs)]
        fixed_dims = [tuple(d if isinstance(d, int) else None for d in shape) for shape in dims]
        self.plugin.check_shapes(fixed_dims, attributes)
        outputs = self.plugin.output_dims(dims, attributes)
        expressions: dict[Any, Any] = {}
        return tuple(
            self.trtp.from_shape_expr(
                tuple(as_expression(self.trtp, d, inputs, expressions) for d in shape), inputs[number].dtype
            )
            for shape, number in zip(outputs, self.plugin.output_types, strict=True)
        )


class MakeLaunch(_Callback):
    """Name, PTX, launch geometry and scalar arguments of the kernel."""

    def __init__(self, trt: Any, trtp: Any, plugin: EmbeddedPlugin, embedding: Embedding) -> None:
        super().__init__(trt, trtp, plugin, embedding)
        outputs = GenericAlias(tuple, (trtp.TensorDesc,) * len(plugin.output_types))
        result = GenericAlias(tuple, (str, str, trtp.KernelLaunchParams, trtp.SymExprs))
        self.__signature__ = self._signature({"outputs": outputs, "tactic": int}, result)

    def __call__(self, *values: Any) -> tuple[str, str, Any, Any]:
        """For the `TensorDesc`s of the inputs, every attribute, those of the outputs, and a tactic that is not used."""
        try:
            count = len(self.plugin.inputs)
            inputs, attributes = values[:count], values[count:-2]
            names = [a.name for a in self.plugin.attributes]
            return self._launch(inputs, self._checked(dict(zip(names, attributes, strict=True))))
        except Exception as error:
            self._failed(error)
            raise

    def _launch(self, inputs: Sequence[Any], attributes: Mapping[str, Any]) -> tuple[str, str, Any, Any]:
        described = [self._input(descriptor, number) for number, descriptor in enumerate(inputs)]
        kernel = self.plugin.kernel(described, attributes, self.embedding.target)
        compiled = self.embedding.kernel(kernel.entry, kernel.source)
        expressions: dict[Any, Any] = {}

        def expression(size: Any) -> Any:
            return self.trtp.SymInt32(as_expression(self.trtp, size, inputs, expressions))

        launch = self.trtp.KernelLaunchParams()
        launch.grid_x, launch.block_x = expression(kernel.grid), expression(kernel.block)
        launch.shared_mem = expression(kernel.shared)
        arguments = self.trtp.SymIntExprs(len(kernel.arguments))
        for number, (_, size) in enumerate(kernel.arguments):
            arguments[number] = expression(size)
        return kernel.entry, compiled.ptx, launch, arguments

    def _input(self, descriptor: Any, number: int) -> EmbeddedInput:
        name = str(descriptor.dtype).rsplit(".", 1)[-1]
        if name not in _TYPES:
            allowed = ", ".join(_TYPES.values())
            raise InvalidRequestError(f"{self.plugin.op_type} takes {allowed}, not {name} at input {number}")
        shape = descriptor.shape
        opt, high = (shape.opt, shape.max) if shape.is_dynamic else (shape, shape)
        return EmbeddedInput(_TYPES[name], dims_of(descriptor, number), tuple(opt), tuple(high))


def _annotation(kind: str) -> Any:
    """Arrays of what the parser gives; for single numbers too, since 10.x makes them so that NumPy 2.4 refuses."""
    import numpy as np
    import numpy.typing as npt

    return npt.NDArray[np.float32] if kind == "float" else npt.NDArray[np.int32]
