"""The one door through which the bytes of an engine reach TensorRT, which runs code that they hold.

An engine from a file is admitted first: its bytes are those that were signed (where a signature was verified), it is of
this TensorRT, what code it carries was named, and its plugin libraries are those that it was built with. No other file
calls `deserialize_cuda_engine`; a test of the architecture says so.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.backends.protocol import Capabilities
from trtconv.backends.tensorrt.engine_fit import (
    EngineFile,
    read_engine,
    require_named_code,
    require_plugins,
    require_version,
)
from trtconv.backends.tensorrt.messages import logger_of
from trtconv.backends.tensorrt.plugin_loading import load_plugins
from trtconv.core.errors import TrtconvError
from trtconv.core.trust.trust import NO_CODE, EngineCode

if TYPE_CHECKING:
    from trtconv.core.trust.signature import VerifiedSet


@dataclass(frozen=True)
class AdmittedEngine:
    """An engine's bytes that may be deserialised, with these libraries, and with `code` of theirs that may run."""

    file: EngineFile
    plugins: tuple[Path, ...] = ()
    code: EngineCode = NO_CODE


@dataclass(frozen=True)
class DeserializedEngine:
    """TensorRT's engine, the runtime that has to outlive it, and what TensorRT warned of."""

    runtime: Any
    engine: Any
    warnings: tuple[str, ...] = ()


def admit_engine(
    path: Path,
    library: Callable[[], Capabilities],
    *,
    plugins: tuple[Path, ...] = (),
    foreign: bool = False,
    code: EngineCode = NO_CODE,
    verified: VerifiedSet | None = None,
) -> AdmittedEngine:
    """Read an engine and decide, before TensorRT gets a byte of it, whether it may be deserialised by `library`.

    Raises UntrustedError for code that was not named and for bytes that `verified` does not vouch for, UnsupportedError
    for an engine of another TensorRT, InvalidRequestError for what is not an engine, one without a manifest that is not
    `foreign`, one that its manifest does not describe, and plugin libraries that are absent or others.
    """
    file = read_engine(path, foreign=foreign, verified=verified)
    require_version(path, file.header, file.manifest, library())
    require_named_code(path, file.manifest, code)
    require_plugins(path, file.manifest, plugins)
    return AdmittedEngine(file, plugins, code)


def deserialize_engine(trt: Any, capabilities: Capabilities, admitted: AdmittedEngine) -> DeserializedEngine:
    """Load its plugin libraries and deserialise it, in the context of the GPU that is current.

    TensorRT itself refuses code of the host in a plan unless that was named. Raises TrtconvError with its words.
    """
    logger = logger_of(trt)
    with logger.collect() as messages:
        load_plugins(trt, logger, admitted.plugins)
        runtime, engine = _deserialize(trt, admitted.file.plan, admitted.code)
    if engine is None:
        raise TrtconvError(
            f"{capabilities} refuses '{admitted.file.path}'",
            details=messages.errors[:8],
            hint="build it again on this machine",
        )
    return DeserializedEngine(runtime, engine, tuple(messages.warnings))


def deserialize_built(trt: Any, plan: bytes | memoryview) -> DeserializedEngine:
    """A plan that the builder in this process has just given, to be inspected; code of the host in it may not run."""
    runtime, engine = _deserialize(trt, plan, NO_CODE)
    if engine is None:
        raise TrtconvError("TensorRT refuses the engine that it has built", hint="see `trtconv doctor`")
    return DeserializedEngine(runtime, engine)


def _deserialize(trt: Any, plan: bytes | memoryview, code: EngineCode) -> tuple[Any, Any]:
    runtime = trt.Runtime(logger_of(trt))
    if code.host:
        runtime.engine_host_code_allowed = True
    return runtime, runtime.deserialize_cuda_engine(plan)
