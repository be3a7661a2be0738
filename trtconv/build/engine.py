"""`build_engine`: the room's one public function."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.backends.tensorrt.builder.configuration import check_settings
from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
from trtconv.backends.protocol import BuiltEngine, Capabilities, EngineSettings, Profile
from trtconv.backends.select import choose_backend
from trtconv.build.precision import PRECISIONS, require_precision, resolve_precision
from trtconv.build.profiles import Plan, plan_profiles
from trtconv.core.artifacts import beside, manifest_path, require_file, require_writable, sha256_file, write_bytes
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import Signature, external_files, load_model, model_files, signature
from trtconv.core.files.output_paths import require_distinct
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.model.provenance import PADDING_KEY, REFERENCE_KEY
from trtconv.core.requests import BuildRequest
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.plugins.aot.registry import embedded_in
from trtconv.plugins.libraries.finding import libraries_for_model

if TYPE_CHECKING:
    import onnx


@dataclass(frozen=True)
class BuildResult:
    """What was built. `profiles` map input names to (min, opt, max) shapes, one mapping per optimization profile."""

    engine: Path
    manifest: Path
    backend: str
    version: str
    profiles: tuple[Profile, ...]
    engine_bytes: int
    seconds: float
    messages: tuple[str, ...] = field(default=())
    layers: int = 0


def require_request(request: BuildRequest) -> None:
    """Raise for what is wrong with a request whatever the model, as `build_engine` would; nothing is built."""
    if request.precision not in PRECISIONS:
        raise InvalidRequestError(f"unknown precision '{request.precision}'", hint="one of " + ", ".join(PRECISIONS))
    for library in request.plugins:
        require_file(library, "plugin library")
    capabilities = choose_backend(request.backend).capabilities()
    check_settings(capabilities, _settings(request, Plan((), ShapeSpace(), (), ())))


def require_outputs(request: BuildRequest, model: onnx.ModelProto) -> None:
    """Raise InvalidRequestError where the engine, its manifest or the timing cache could not be written or are read."""
    outputs = [request.output, manifest_path(request.output), *([request.timing_cache] if request.timing_cache else ())]
    for output in outputs:
        require_writable(output)
    require_distinct(outputs, (*model_files(request.model, model), *request.plugins))


def build_engine(request: BuildRequest, progress: Progress | None = None) -> BuildResult:
    """Build an engine from an ONNX file and write it with its manifest.

    Raises InvalidRequestError for a request that does not fit the model, UnsupportedError naming every node that the
    backend refuses, MissingDependencyError when the backend or a GPU that it needs is absent, KeyboardInterrupt after
    Ctrl-C. Nothing is written unless the build succeeds.
    """
    progress = progress or SilentProgress()
    model = load_model(request.model)
    require_outputs(request, model)
    found = signature(model)
    plan = plan_profiles(request, found)
    request = replace(request, precision=resolve_precision(model, request.precision))
    require_precision(model, request.model, request.precision)
    for name in plan.beyond:
        progress.warn(f"{name}={plan.space[name]} goes beyond {found.space[name]}, the range that export proved")
    for library in request.plugins:
        require_file(library, "plugin library")
    backend = choose_backend(request.backend)
    capabilities = backend.capabilities()
    carried = embedded_in(model, dict(request.options))
    if capabilities.plugins and not carried:
        request = replace(request, plugins=libraries_for_model(model, request.plugins, capabilities.version))
    settings = replace(_settings(request, plan), embedded=carried)
    start = time.monotonic()
    with backend.isolated() if request.isolated else nullcontext():
        built = backend.build(settings, progress)
    seconds = time.monotonic() - start
    for message in built.messages:
        progress.note(message)
    progress.phase("writing")
    write_bytes(request.output, built.plan)
    manifest = _manifest(request, plan, found, capabilities, built, model, seconds)
    path = write_manifest(request.output, manifest)
    return BuildResult(
        engine=request.output, manifest=path, backend=capabilities.name, version=capabilities.version,
        profiles=plan.profiles, engine_bytes=manifest.engine_bytes, seconds=seconds, messages=built.messages,
        layers=built.layers,
    )  # fmt: skip


def _settings(request: BuildRequest, plan: Plan) -> EngineSettings:
    values = {}
    for spec in plan.inputs:
        if spec.dtype.kind == "int" and spec.value_range:
            low, high = int(spec.value_range[0]), int(spec.value_range[1])
            values[spec.name] = (low, (low + high + 1) // 2, high)
    return EngineSettings(
        model=request.model, profiles=plan.profiles, pinned=plan.pinned, shape_values=values,
        precision=request.precision, workspace=request.workspace, opt_level=request.opt_level,
        compute_capabilities=request.compute_capabilities, timing_cache=request.timing_cache,
        plugins=request.plugins, options=dict(request.options),
    )  # fmt: skip


def _manifest(
    request: BuildRequest, plan: Plan, found: Signature, capabilities: Capabilities, built: BuiltEngine,
    model: onnx.ModelProto, seconds: float,
) -> EngineManifest:  # fmt: skip
    import trtconv

    files = (request.model.name, *external_files(model))
    ledger = beside(request.model, ".rewrites.json")
    return EngineManifest(
        engine_sha256=sha256_file(request.output),
        engine_bytes=request.output.stat().st_size,
        model_files={name: sha256_file(request.model.parent / name) for name in files},
        backend=capabilities.name,
        version=capabilities.version,
        trtconv=trtconv.__version__,
        inputs=plan.inputs,
        outputs=found.outputs,
        space=plan.space,
        profiles=plan.profiles,
        precision=request.precision,
        options=dict(request.options),
        compute_capabilities=request.compute_capabilities,
        plugins={p.name: sha256_file(p) for p in request.plugins},
        types=built.types,
        layers=built.layers,
        seconds=seconds,
        messages=built.messages,
        environment=built.environment,
        timing_cache=built.timing_cache,
        plugin_kernels=built.plugin_kernels,
        padding=next((p.value for p in model.metadata_props if p.key == PADDING_KEY), ""),
        reference_sha256=next((p.value for p in model.metadata_props if p.key == REFERENCE_KEY), ""),
        ledger_sha256=sha256_file(ledger) if ledger.is_file() else "",
    )
