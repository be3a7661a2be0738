"""`build_engine`: the room's one public function."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

from trtconv.backends.protocol import BuiltEngine, Profile
from trtconv.backends.select import choose_backend
from trtconv.backends.tensorrt.manifest import EngineManifest, write_manifest
from trtconv.build.resolve import ResolvedBuild, resolve_build
from trtconv.core.artifacts import write_bytes
from trtconv.core.files.digest import sha256_file
from trtconv.core.files.set_lock import locked_set
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import BuildRequest
from trtconv.core.text.brief import brief_repr


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

    __repr__ = brief_repr


def build_engine(request: BuildRequest, progress: Progress | None = None) -> BuildResult:
    """Build an engine from an ONNX file and write it with its manifest.

    Raises InvalidRequestError for a request that does not fit the model, UnsupportedError naming every node that the
    backend refuses, MissingDependencyError when the backend or a GPU that it needs is absent, KeyboardInterrupt after
    Ctrl-C. Nothing is written unless the build succeeds.
    """
    progress = progress or SilentProgress()
    with locked_set(request.output):
        return build_resolved(resolve_build(request), progress)


def build_resolved(resolved: ResolvedBuild, progress: Progress) -> BuildResult:
    """Build what `resolve_build` returned; raises as `build_engine`, also when a source file changed meanwhile."""
    capabilities = resolved.capabilities
    backend = choose_backend(capabilities.name)
    start = time.monotonic()
    with backend.isolated() if resolved.isolated else nullcontext():
        built = backend.build(resolved.settings, progress)
    seconds = time.monotonic() - start
    resolved.require_unchanged()
    for message in built.messages:
        progress.note(message)
    progress.phase("writing")
    write_bytes(resolved.output, built.plan)
    manifest = _manifest(resolved, built, seconds)
    path = write_manifest(resolved.output, manifest)
    return BuildResult(
        engine=resolved.output,
        manifest=path,
        backend=capabilities.name,
        version=capabilities.version,
        profiles=resolved.settings.profiles,
        engine_bytes=manifest.engine_bytes,
        seconds=seconds,
        messages=built.messages,
        layers=built.layers,
    )


def _manifest(resolved: ResolvedBuild, built: BuiltEngine, seconds: float) -> EngineManifest:
    settings = resolved.settings
    return EngineManifest(
        engine_sha256=sha256_file(resolved.output),
        engine_bytes=resolved.output.stat().st_size,
        model_files={name: source.sha256 for name, source in resolved.model_files.items()},
        backend=resolved.capabilities.name,
        version=resolved.capabilities.version,
        trtconv=resolved.trtconv,
        inputs=resolved.inputs,
        outputs=resolved.outputs,
        space=resolved.space,
        profiles=settings.profiles,
        precision=settings.precision,
        opt_level=settings.opt_level,
        workspace=settings.workspace,
        options=dict(settings.options),
        compute_capabilities=settings.compute_capabilities,
        plugins={name: source.sha256 for name, source in resolved.plugin_files.items()},
        types=built.types,
        layers=built.layers,
        seconds=seconds,
        messages=built.messages,
        environment=built.environment,
        timing_cache=built.timing_cache,
        plugin_kernels=built.plugin_kernels,
        padding=resolved.padding,
        fixed_rows=resolved.fixed_rows,
        reference_sha256=resolved.reference_sha256,
        ledger_sha256=resolved.ledger_sha256,
    )
