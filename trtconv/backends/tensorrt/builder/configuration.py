"""A builder configuration from settings: the same words for every version, an error where a version lacks one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trtconv.backends.protocol import FASTER_SHAPES, OPTIONS, Capabilities, EngineSettings, Profile
from trtconv.backends.tensorrt.library import as_bool, as_count
from trtconv.core.errors import InvalidRequestError, TrtconvError, UnsupportedError, did_you_mean
from trtconv.core.precision import FP32, TF32, precision_named

# What `trtconv plugins build` calls its library.
OWN_LIBRARY = "libtrtconv_plugins.so"
# What TensorRT 8.6 takes from libraries that are not its own.
FOREIGN_TACTICS = "CUBLAS,CUBLAS_LT,CUDNN"


def check_settings(capabilities: Capabilities, settings: EngineSettings) -> None:
    """Raise before anything is built: UnsupportedError for what this TensorRT lacks, InvalidRequestError otherwise."""
    _require_values(settings)
    _require_features(capabilities, settings)
    _require_compute_capabilities(capabilities, settings.compute_capabilities)


def _require_values(settings: EngineSettings) -> None:
    for name in settings.options:
        if name not in OPTIONS:
            raise InvalidRequestError(
                f"no build option is called '{name}'{did_you_mean(name, OPTIONS)}", hint="one of " + ", ".join(OPTIONS)
            )
    for name in (TF32.name, "sparse_weights", "embed_plugins", FASTER_SHAPES):
        _on(settings, name)
    as_count("max_aux_streams", settings.options.get("max_aux_streams", 0))
    if settings.workspace is not None and settings.workspace <= 0:
        raise InvalidRequestError("no network builds in a workspace of 0 bytes", hint="leave --workspace out")
    if settings.opt_level is not None and not 0 <= settings.opt_level <= 5:
        raise InvalidRequestError(f"there is no optimization level {settings.opt_level}", hint="one of 0 to 5")


def _require_features(capabilities: Capabilities, settings: EngineSettings) -> None:
    unsupported = {
        "a timing cache": settings.timing_cache is not None and not capabilities.timing_cache,
        "plugin libraries": bool(settings.plugins) and not capabilities.plugins,
        "embed_plugins": bool(settings.embedded) and not capabilities.embedded_plugins,
        "version_compatible": _on(settings, "version_compatible") and not capabilities.version_compatible,
        "debug_tensors": bool(settings.options.get("debug_tensors")) and not capabilities.debug_tensors,
        "strip_plan": _on(settings, "strip_plan") and not capabilities.strip_plan,
        "refit": _on(settings, "refit") and capabilities.name == "tensorrt-rtx",
        "tactic_sources": "tactic_sources" in settings.options and capabilities.name == "tensorrt-rtx",
        # Later versions have no other way.
        FASTER_SHAPES: FASTER_SHAPES in settings.options and capabilities.generation != 8,
    }
    for what, lacking in unsupported.items():
        if lacking:
            raise UnsupportedError(
                f"{capabilities} has no use for {what}", hint=f"leave {what} out, or build with another --backend"
            )


def _require_compute_capabilities(capabilities: Capabilities, named: Sequence[str]) -> None:
    if named and not capabilities.compute_capabilities:
        raise UnsupportedError(
            f"{capabilities} builds only for the GPU it runs on",
            hint="leave --compute-capability out, or build with --backend tensorrt-rtx",
        )
    for text in named:
        if text not in capabilities.compute_capabilities:
            supported = capabilities.compute_capabilities
            raise UnsupportedError(
                f"{capabilities} cannot build for compute capability {text}",
                hint="it builds for " + ", ".join(supported),
            )


def _on(settings: EngineSettings, name: str) -> bool:
    return as_bool(name, settings.options.get(name, False))


def configure(trt: Any, capabilities: Capabilities, builder: Any, settings: EngineSettings) -> Any:
    """The configuration without profiles, monitor and timing cache."""
    config = builder.create_builder_config()
    if settings.workspace is not None:
        config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, settings.workspace)
    if settings.opt_level is not None:
        config.builder_optimization_level = settings.opt_level
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    # Without it 8.6 gives each profile to one execution context only; later versions always share.
    if capabilities.generation == 8:
        config.set_preview_feature(trt.PreviewFeature.PROFILE_SHARING_0806, True)
        if FASTER_SHAPES in settings.options:
            config.set_preview_feature(trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805, _on(settings, FASTER_SHAPES))
    _set_precision(trt, capabilities, config, settings)
    flags = {
        "refit": "REFIT",
        "strip_plan": "STRIP_PLAN",
        "version_compatible": "VERSION_COMPATIBLE",
        "sparse_weights": "SPARSE_WEIGHTS",
    }
    for option, flag in flags.items():
        if _on(settings, option):
            config.set_flag(getattr(trt.BuilderFlag, flag))
    _set_targets(trt, capabilities, config, settings)
    if "max_aux_streams" in settings.options:
        config.max_aux_streams = as_count("max_aux_streams", settings.options["max_aux_streams"])
    if "tactic_sources" in settings.options:
        named = _tactic_bits(trt, str(settings.options["tactic_sources"]))
        config.set_tactic_sources(named)
        if capabilities.generation == 8:
            # On by default, it keeps these libraries out of layers although they are named (NvInfer.h, PreviewFeature).
            left_out = trt.PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805
            config.set_preview_feature(left_out, not named & _tactic_bits(trt, FOREIGN_TACTICS))
    elif capabilities.generation == 8 and settings.plugins:
        leave_out_foreign_tactics(trt, config, settings)
    return config


def leave_out_foreign_tactics(trt: Any, config: Any, settings: EngineSettings) -> None:
    """Let TensorRT 8.6 build trtconv's plugins without cuBLAS and cuDNN.

    It loads both for any plugin, to hand it their handles (measured: without them the build fails), unless they are no
    tactic sources (NvInferRuntime.h, TacticSource). trtconv's plugins take no handles, and layers of 8.6's own do
    without both by default. Libraries of the user's may need them.
    """
    if all(p.name == OWN_LIBRARY for p in settings.plugins):
        config.set_tactic_sources(config.get_tactic_sources() & ~_tactic_bits(trt, FOREIGN_TACTICS))


def _set_precision(trt: Any, capabilities: Capabilities, config: Any, settings: EngineSettings) -> None:
    # TF32 is on by default in every version and rounds fp32 products to 10 bits of mantissa.
    if not _on(settings, TF32.name):
        config.clear_flag(getattr(trt.BuilderFlag, TF32.flag))
    if settings.precision == FP32.name:
        return
    flag = precision_named(settings.precision).flag
    if capabilities.strongly_typed:
        return
    if flag not in capabilities.precision_flags:
        raise UnsupportedError(
            f"{capabilities} has no {settings.precision}", hint="build with --precision fp32 or fp16"
        )
    config.set_flag(getattr(trt.BuilderFlag, flag))


def _set_targets(trt: Any, capabilities: Capabilities, config: Any, settings: EngineSettings) -> None:
    level = str(settings.options.get("hardware_compatibility", "none")).upper()
    if level != "NONE":
        if level not in capabilities.hardware_compatibility:
            raise UnsupportedError(
                f"{capabilities} has no hardware compatibility level '{level.lower()}'",
                hint="it has none, " + ", ".join(n.lower() for n in capabilities.hardware_compatibility),
            )
        config.hardware_compatibility_level = getattr(trt.HardwareCompatibilityLevel, level)
    if settings.compute_capabilities:
        config.num_compute_capabilities = len(settings.compute_capabilities)
        for index, text in enumerate(settings.compute_capabilities):
            name = "SM" + text.replace(".", "")
            config.set_compute_capability(getattr(trt.ComputeCapability, name), index)


def _tactic_bits(trt: Any, text: str) -> int:
    bits = 0
    members = trt.TacticSource.__members__
    for word in (w.strip().upper() for w in text.split(",") if w.strip()):
        if word not in members:
            raise InvalidRequestError(
                f"no tactic source is called '{word}'{did_you_mean(word, members)}", hint="one of " + ", ".join(members)
            )
        bits |= 1 << int(members[word])
    return bits


def add_profiles(
    builder: Any, network: Any, config: Any, settings: EngineSettings, capabilities: Capabilities
) -> tuple[Profile, ...]:
    """Add the optimization profiles; returns them with the inputs that the network really has."""
    inputs = [network.get_input(i) for i in range(network.num_inputs)]
    dynamic = [t for t in inputs if -1 in tuple(t.shape)]
    shaping = [t for t in inputs if t.is_shape_tensor]
    if not dynamic and not shaping:
        return ({},)
    added: list[Profile] = []
    for ranges in settings.profiles:
        profile = builder.create_optimization_profile()
        shapes = {t.name: ranges[t.name] for t in dynamic if t.name in ranges}
        for tensor in dynamic:
            if tensor.name not in shapes:
                raise InvalidRequestError(f"input '{tensor.name}' is dynamic and the profile has no shapes for it")
            profile.set_shape(tensor.name, *shapes[tensor.name])
        for tensor in shaping:
            profile.set_shape_input(tensor.name, *_values(tensor, settings))
        # A profile that is not ordered or does not fit is refused by an index of -1 only.
        if config.add_optimization_profile(profile) < 0:
            raise TrtconvError(f"{capabilities} refuses the profile {shapes}", hint="is min <= opt <= max everywhere?")
        added.append(shapes)
    return tuple(added)


def _values(tensor: Any, settings: EngineSettings) -> list[list[int]]:
    if tensor.name not in settings.shape_values:
        raise InvalidRequestError(
            f"the values of input '{tensor.name}' decide shapes, and their range is not known",
            hint=f"give it: --input '{tensor.name}:int64[{','.join(map(str, tensor.shape))}]=LOW:HIGH'",
        )
    count = 1
    for dim in tensor.shape:
        count *= dim
    return [[value] * count for value in settings.shape_values[tensor.name]]
