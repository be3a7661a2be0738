"""`tensorrt` 8.6 to 11 and `tensorrt_rtx` 1.5 and later, behind the one protocol."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.cuda.context import PrimaryContext
from trtconv.backends.cuda.driver import Gpu, probe_cuda, require_cuda
from trtconv.backends.protocol import BuiltEngine, Capabilities, EngineRunner, EngineSettings, NodeProblem
from trtconv.backends.tensorrt.admission import admit_engine, deserialize_built
from trtconv.backends.tensorrt.builder.configuration import add_profiles, check_settings, configure
from trtconv.backends.tensorrt.builder.embedded_plugins import kernels_in_engine
from trtconv.backends.tensorrt.builder.graph_for_parser import known_problems, prepare
from trtconv.backends.tensorrt.builder.interruptible import Cancellation, make_monitor, run_interruptible
from trtconv.backends.tensorrt.builder.isolated import BuildProcess, build_isolated
from trtconv.backends.tensorrt.builder.network import (
    ParsedNetwork,
    create_network,
    element_types,
    parse,
    parser_problems,
)
from trtconv.backends.tensorrt.builder.problems import build_failure
from trtconv.backends.tensorrt.builder.weak_rest import build_quantised
from trtconv.backends.tensorrt.builder.weak_types import build_pinned, pin_types
from trtconv.backends.tensorrt.debug_tensors import mark_debug, mark_outputs
from trtconv.backends.tensorrt.engine_fit import require_gpu
from trtconv.backends.tensorrt.engine_io import engine_tensors
from trtconv.backends.tensorrt.layers import layers_of_type, read_layers
from trtconv.backends.tensorrt.library import import_tensorrt, probe_capabilities
from trtconv.backends.tensorrt.messages import Messages, logger_of
from trtconv.backends.tensorrt.plugin_loading import load_plugins
from trtconv.backends.tensorrt.refit import refit_plan
from trtconv.backends.tensorrt.timing_cache import attach_cache, cache_key, merge_cache
from trtconv.core.errors import InvalidRequestError, UnsupportedError
from trtconv.core.model.file import load_model
from trtconv.core.precision import FP32, HALF_NAMES, HALVES, QUANTISED_NAMES, precision_named
from trtconv.core.progress import Progress
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    import numpy as np
    import onnx

    from trtconv.core.trust.signature import VerifiedSet

    Array = np.ndarray[Any, np.dtype[Any]]

_LOW = {p.name: p.dtype for p in HALVES}


class TensorRTBackend:
    """One installed TensorRT. `family` is `tensorrt` or `tensorrt-rtx`; nothing is imported before it is needed."""

    def __init__(self, family: str) -> None:
        self._family = family
        self._warm: BuildProcess | None = None

    @cached_property
    def _trt(self) -> Any:
        return import_tensorrt(self._family)

    def capabilities(self) -> Capabilities:
        """What it can do. Raises MissingDependencyError when it is not installed."""
        return probe_capabilities(self._trt, self._family)

    def build(self, settings: EngineSettings, progress: Progress) -> BuiltEngine:
        """Build an engine; see the protocol for what is raised. Ctrl-C raises KeyboardInterrupt once it has stopped."""
        capabilities = self.capabilities()
        if self._warm is None and capabilities.progress:
            return self.build_here(settings, progress)
        check_settings(capabilities, settings)
        if capabilities.needs_gpu_to_build:
            require_cuda(f"building with {capabilities}")
        if self._warm is not None:
            return self._warm.build(settings, progress)
        return build_isolated(self._family, settings, progress)

    @contextmanager
    def warm(self) -> Iterator[None]:
        """Builds in here start TensorRT once where each would start it anew (8.6 takes seconds for that)."""
        if self.capabilities().progress or self._warm is not None:
            yield
            return
        with self.isolated():
            yield

    @contextmanager
    def isolated(self) -> Iterator[None]:
        """Builds in here happen in a child, so that a crash of the builder is an error."""
        with BuildProcess(self._family) as self._warm:
            try:
                yield
            finally:
                self._warm = None

    def build_here(self, settings: EngineSettings, progress: Progress) -> BuiltEngine:
        """Build in this process."""
        capabilities = self.capabilities()
        check_settings(capabilities, settings)
        gpu = require_cuda(f"building with {capabilities}") if capabilities.needs_gpu_to_build else None
        model = prepare(settings, capabilities)
        cancellation = Cancellation()
        with logger_of(self._trt).collect() as messages:

            def work() -> BuiltEngine:
                current = PrimaryContext(gpu.index).scope if gpu is not None else nullcontext()
                with current, kernels_in_engine(self._trt, settings, gpu) as kernels:
                    built = self._build(capabilities, model, settings, messages, progress, cancellation, gpu)
                return replace(built, plugin_kernels=kernels())

            def waiting(seconds: float) -> None:
                if not capabilities.progress:
                    progress.phase(f"building, {seconds:.0f} s")

            return run_interruptible(work, cancellation, waiting)

    def _build(
        self,
        capabilities: Capabilities,
        model: onnx.ModelProto,
        settings: EngineSettings,
        messages: Messages,
        progress: Progress,
        cancellation: Cancellation,
        gpu: Gpu | None,
    ) -> BuiltEngine:
        trt = self._trt
        progress.phase("parsing")
        load_plugins(trt, logger_of(trt), settings.plugins)
        parsed = parse(trt, capabilities, logger_of(trt), model, settings.model, messages)
        types = element_types(parsed.network)
        _require_types(types, settings, capabilities)
        mark_outputs(parsed.network, _names(settings.options.get("debug_outputs", "")))
        if settings.options.get("debug_tensors"):
            mark_debug(parsed.network, _names(settings.options["debug_tensors"]))
        config = configure(trt, capabilities, parsed.builder, settings)
        add_profiles(parsed.builder, parsed.network, config, settings, capabilities)
        if capabilities.progress:
            monitor = make_monitor(trt, progress, cancellation)
            config.progress_monitor = monitor
        cache = self._open_cache(capabilities, config, settings, gpu)
        layers = int(parsed.network.num_layers)
        started = time.monotonic()
        weak = settings.precision != FP32.name and not capabilities.strongly_typed
        plan = self._serialize(parsed, config, model, settings.precision if weak else "", messages)
        built_s = time.monotonic() - started
        if cancellation.requested:
            raise KeyboardInterrupt
        if plan is None:
            raise build_failure(messages.errors, model, settings.model, capabilities)
        environment = environment_of(gpu)
        if weak:
            types = _built_types(trt, plan, settings, capabilities)
        # Without TensorRT's own start and the parser: what a timing cache can save.
        facts = {**cache(), "builder_s": round(built_s, 3)} if cache else {}
        return BuiltEngine(memoryview(plan), layers, messages.errors + messages.warnings, types, environment, facts)

    def _serialize(
        self, parsed: ParsedNetwork, config: Any, model: onnx.ModelProto, pinned: str, messages: Messages
    ) -> Any:
        """The plan, or None. A network that is not strongly typed is held to the precision `pinned`, if any."""
        network = parsed.network
        if pinned in HALF_NAMES:
            narrow = pin_types(self._trt, network, model)
            return build_pinned(self._trt, parsed.builder, network, config, narrow, messages)
        if pinned:
            # Q/DQ pairs say by themselves which layers compute in int8; a pin would take that back.
            return build_quantised(self._trt, parsed.builder, network, config, model, messages)
        return parsed.builder.build_serialized_network(network, config)

    def _open_cache(
        self, capabilities: Capabilities, config: Any, settings: EngineSettings, gpu: Gpu | None
    ) -> Callable[[], dict[str, Any]] | None:
        """Attach the timing cache; the function that is returned merges it back and tells what it held."""
        path = settings.timing_cache
        if path is None or gpu is None:
            return None
        key = cache_key(capabilities, gpu, probe_cuda().driver, settings)
        before = attach_cache(config, path, key)

        def merge() -> dict[str, Any]:
            return {
                "key": dict(key.facts),
                "bytes_before": len(before),
                "bytes": merge_cache(config, path, key, before),
            }

        return merge

    def supports(self, model: Path) -> tuple[NodeProblem, ...]:
        """Every node that the parser refuses, its own misreadings included."""
        capabilities = self.capabilities()
        proto = load_model(model)
        misread_nodes = tuple(known_problems(proto, capabilities))
        if misread_nodes:
            return misread_nodes
        if capabilities.needs_gpu_to_build:
            require_cuda(f"asking the parser of {capabilities}")
        return ask_parser(self._trt, capabilities, proto, model)

    def load(
        self,
        engine: Path,
        *,
        plugins: tuple[Path, ...] = (),
        foreign: bool = False,
        code: EngineCode = NO_CODE,
        verified: VerifiedSet | None = None,
    ) -> EngineRunner:
        """Open an engine for running on the GPU of this machine, after it was shown to belong here."""
        from trtconv.backends.runtime.session import open_session

        admitted = admit_engine(
            engine, self.capabilities, plugins=plugins, foreign=foreign, code=code, verified=verified
        )
        capabilities = self.capabilities()
        gpu = require_cuda(f"running '{engine}'")
        warnings = require_gpu(engine, admitted.file.manifest, capabilities, gpu)
        return open_session(self._trt, capabilities, admitted, gpu, warnings)

    def refit(
        self,
        engine: Path,
        weights: Mapping[str, Array],
        *,
        plugins: tuple[Path, ...] = (),
        code: EngineCode = NO_CODE,
    ) -> bytes:
        """The engine's plan with new weights, on the GPU of this machine."""
        admitted = admit_engine(engine, self.capabilities, plugins=plugins, code=code)
        capabilities = self.capabilities()
        gpu = require_cuda(f"refitting '{engine}'")
        require_gpu(engine, admitted.file.manifest, capabilities, gpu)
        with PrimaryContext(gpu.index).scope:
            return refit_plan(self._trt, capabilities, admitted, weights)


def ask_parser(trt: Any, capabilities: Capabilities, model: onnx.ModelProto, path: Path) -> tuple[NodeProblem, ...]:
    """What the parser refuses. 8.6 names the first bad node of each subgraph, later versions all of them."""
    logger = logger_of(trt)
    _builder, network = create_network(trt, capabilities, logger)
    parser = trt.OnnxParser(network, logger)
    data, path_text = model.SerializeToString(), str(path.resolve())
    if hasattr(parser, "supports_model_v2"):
        accepted = parser.supports_model_v2(data, path_text)
    else:
        accepted = parser.parse(data, path_text)
    return () if accepted else parser_problems(parser, model)


def environment_of(gpu: Gpu | None) -> dict[str, str]:
    """Where an engine was built, for its manifest; no GPU when none was used."""
    import platform

    facts = {"python": platform.python_version(), "system": platform.system(), "machine": platform.machine()}
    if gpu is not None:
        facts |= {
            "gpu": gpu.name,
            "compute_capability": gpu.compute_capability,
            "multiprocessors": str(gpu.multiprocessors),
            "driver": probe_cuda().driver,
        }
    return facts


def _names(text: Any) -> set[str]:
    return {w.strip() for w in str(text).split(",") if w.strip()}


def _require_types(types: dict[str, int], settings: EngineSettings, capabilities: Capabilities) -> None:
    """A strongly typed network says itself whether the graph was typed; never build FP32 when less was asked for."""
    low_dtype = _LOW.get(settings.precision)
    if low_dtype and capabilities.strongly_typed and not types.get(low_dtype):
        raise InvalidRequestError(
            f"--precision {settings.precision}, but {settings.model} computes in fp32 only",
            hint=f"type the graph first: `trtconv convert --precision {settings.precision}` does",
        )


def _set_opt(trt: Any, engine: Any, context: Any, settings: EngineSettings) -> bool:
    """Give a context the shapes of opt, without which 8.6 reports no types; False where a shape is an input's value."""
    if context is None or any(t.host for t in engine_tensors(trt, engine)):
        return False
    context.set_optimization_profile_async(0, 0)
    shaped = all(context.set_input_shape(name, opt) for name, (_, opt, _) in settings.profiles[0].items())
    context.infer_shapes()
    return shaped


def _built_types(trt: Any, plan: Any, settings: EngineSettings, capabilities: Capabilities) -> dict[str, int]:
    """Layers by element type in a weakly typed engine; one that came out all FP32 is an error, not a surprise."""
    # The runtime has to outlive the engine.
    deserialized = deserialize_built(trt, plan)
    engine = deserialized.engine
    context = engine.create_execution_context()
    if not _set_opt(trt, engine, context, settings):
        return {}
    layers = read_layers(trt, engine, context)
    del context, engine
    low_dtype = precision_named(settings.precision).dtype
    count, plain = layers_of_type(layers, low_dtype), layers_of_type(layers, "float32")
    # Where the inspector reports no types at all, nothing is claimed; nor of INT8 in a region, whose ends are floats.
    untold = settings.precision in QUANTISED_NAMES and any(layer.is_region for layer in layers)
    if plain and not count and not untold:
        raise UnsupportedError(
            f"{capabilities} built {settings.model} in fp32 although {settings.precision} was asked for",
            hint="no layer has a faster kernel in that type; build with --precision fp32",
        )
    return {low_dtype: count, "float32": plain}
