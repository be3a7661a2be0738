"""Importing `tensorrt` or `tensorrt_rtx`, and what the imported one can do, told by the names that it has."""

from __future__ import annotations

import importlib
from typing import Any

from trtconv.backends.protocol import Capabilities
from trtconv.core.errors import InvalidRequestError, MissingDependencyError, UnsupportedError
from trtconv.core.requests.build import OFF, is_on

MODULES = {"tensorrt": "tensorrt", "tensorrt-rtx": "tensorrt_rtx"}
INSTALL = {
    "tensorrt": "pip install 'tensorrt>=10' (or tensorrt==8.6.0 with Python 3.10 or older)",
    "tensorrt-rtx": "pip install 'tensorrt-rtx-cu13>=1.5,<2'",
}
_OLDEST_RTX = (1, 5)
_OLDEST_TENSORRT = (8, 6)


def import_tensorrt(family: str) -> Any:
    """Import the bindings of a family. Raises MissingDependencyError with the command that installs them.

    UnsupportedError is raised for a version that is too old: RTX 1.4 has TensorRT 10's interface and another ABI.
    """
    try:
        trt = importlib.import_module(MODULES[family])
    except ModuleNotFoundError as error:
        raise MissingDependencyError(f"{family} is not installed", hint=INSTALL[family]) from error
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingDependencyError(
            f"{family} is installed but does not load: {error}", hint=f"install it anew: {INSTALL[family]}"
        ) from error
    if not hasattr(trt, "OnnxParser") or not hasattr(trt, "Builder"):
        raise MissingDependencyError(
            f"the installed {family} has no builder or no ONNX parser (a lean or dispatch runtime?)",
            hint=INSTALL[family],
        )
    numbers = version_numbers(trt)
    oldest = _OLDEST_RTX if family == "tensorrt-rtx" else _OLDEST_TENSORRT
    if numbers[:2] < oldest:
        raise UnsupportedError(
            f"{family} {trt.__version__} is too old, {'.'.join(map(str, oldest))} is the oldest that trtconv knows",
            hint=INSTALL[family],
        )
    return trt


def version_numbers(trt: Any) -> tuple[int, ...]:
    """The numbers of `__version__`; a suffix such as `.post1` is dropped."""
    numbers = []
    for word in str(trt.__version__).split("."):
        if not word.isdigit():
            break
        numbers.append(int(word))
    return tuple(numbers)


def probe_capabilities(trt: Any, family: str) -> Capabilities:
    """What these bindings can do. Nothing is created, so this is safe without a GPU."""
    rtx = family == "tensorrt-rtx"
    generation = 11 if rtx else version_numbers(trt)[0]
    creation, flags, config = trt.NetworkDefinitionCreationFlag, trt.BuilderFlag, trt.IBuilderConfig
    capability = getattr(trt, "ComputeCapability", None)
    return Capabilities(
        name=family,
        version=str(trt.__version__),
        generation=generation,
        needs_gpu_to_build=not rtx,
        explicit_batch=hasattr(creation, "EXPLICIT_BATCH"),
        # TensorRT 11 keeps the flag as one that does nothing; its bit means something else in 10.
        strongly_typed_flag=generation == 10 and hasattr(creation, "STRONGLY_TYPED"),
        precision_flags=tuple(n for n in ("FP16", "BF16", "INT8", "FP8") if hasattr(flags, n)),
        progress=hasattr(trt, "IProgressMonitor") and hasattr(config, "progress_monitor"),
        timing_cache=not rtx,
        plugins=not rtx,
        int64=hasattr(trt.DataType, "INT64"),
        debug_tensors=hasattr(trt, "IDebugListener"),
        version_compatible=not rtx and hasattr(flags, "VERSION_COMPATIBLE"),
        strip_plan=not rtx and hasattr(flags, "STRIP_PLAN"),
        hardware_compatibility=() if rtx else _members(trt.HardwareCompatibilityLevel, ""),
        compute_capabilities=tuple(_dotted(n) for n in _members(capability, "SM")),
        embedded_plugins=not rtx and hasattr(trt, "QuickPluginCreationRequest"),
        # The others load cuBLAS and cuDNN, and are off by default.
        tactic_sources=()
        if rtx
        else tuple(n for n in _members(getattr(trt, "TacticSource", None), "") if n.endswith("_CONVOLUTIONS")),
    )


def _members(enum: Any, prefix: str) -> tuple[str, ...]:
    names = getattr(enum, "__members__", {})
    return tuple(n for n in names if n.startswith(prefix) and n != "NONE")


def _dotted(name: str) -> str:
    digits = name.removeprefix("SM")
    return f"{digits[:-1]}.{digits[-1]}"


def as_bool(name: str, value: Any) -> bool:
    """Truth of an option's value as a config file or command line gives it. Raises InvalidRequestError for others."""
    if not is_on(value) and str(value).lower() not in OFF:
        raise InvalidRequestError(
            f"the build option {name} is true or false, not '{value}'",
            hint=f"write --option {name}=true, or leave it out",
        )
    return is_on(value)


def as_count(name: str, value: Any) -> int:
    """An option's value as a number of at least 0. Raises InvalidRequestError for others."""
    if not str(value).isdigit():
        raise InvalidRequestError(
            f"the build option {name} is a number, not '{value}'", hint=f"write --option {name}=1, or leave it out"
        )
    return int(value)
