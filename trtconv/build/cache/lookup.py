"""`build_cached`: the engine from the cache when it was built before, else built and kept.

Two builds are the same when the bytes of the model and of its external weights, profiles, precision, flags, plugin
libraries, the version of TensorRT and of trtconv, and the GPU with its driver are the same. A timing cache is no part
of it: it makes a build fast and does not change what is asked for.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.backends.cuda.driver import probe_cuda
from trtconv.backends.tensorrt.manifest import SCHEMA as MANIFEST_SCHEMA
from trtconv.backends.tensorrt.manifest import read_engine_manifest
from trtconv.backends.protocol import Capabilities
from trtconv.backends.select import choose_backend
from trtconv.build.engine import BuildResult, build_engine, require_request
from trtconv.build.precision import resolve_precision
from trtconv.build.profiles import plan_profiles
from trtconv.core.artifacts import manifest_path, read_json, require_writable, sha256_file, write_json
from trtconv.build.cache.store import EngineCache, Entry, Lookup
from trtconv.core.errors import InvalidRequestError
from trtconv.core.model.file import external_files, load_model, signature
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import BuildRequest
from trtconv.plugins.aot.registry import embedded_in
from trtconv.plugins.libraries.finding import libraries_for_model
from trtconv.plugins.libraries.library import source_hash


@dataclass(frozen=True)
class CachedBuild:
    """The result, whether it came from the cache, and a sentence on why (or what changed since the nearest engine)."""

    result: BuildResult
    hit: bool
    reason: str


def build_cached(
    request: BuildRequest, progress: Progress | None = None, *, cache: EngineCache | None
) -> CachedBuild:
    """Build as `build_engine` does, answered from `cache` where that holds the engine; None builds in any case.

    Raises what `build_engine` raises. A cache that cannot be written costs a warning, not the build.
    """
    progress = progress or SilentProgress()
    if cache is None:
        return CachedBuild(build_engine(request, progress), False, "the engine cache is off")
    progress.phase("looking into the engine cache")
    parts = key_parts(request)
    start = time.monotonic()
    found = cache.lookup(parts, verify=False)
    if found.entry is not None:
        result = _restored(cache, found.entry, request, start)
        if result is not None:
            reason = f"from the engine cache ({found.entry.key[:12]}), checked by its hash"
            progress.note(reason)
            return CachedBuild(result, True, reason)
        found = Lookup(None, "the cached engine is damaged; it was removed")
    progress.note(found.reason)
    built = build_engine(request, progress)
    try:
        cache.store(parts, built.engine, {"manifest": read_json(built.manifest, "engine manifest")})
    except (OSError, InvalidRequestError) as error:
        progress.warn(f"the engine was not kept in the cache '{cache.root}': {error}")
    return CachedBuild(built, False, found.reason)


def key_parts(request: BuildRequest) -> dict[str, Any]:
    """Everything that decides which engine comes out, as plain data. Raises as `build_engine` does."""
    import trtconv

    model = load_model(request.model)
    require_writable(request.output)
    plan = plan_profiles(request, signature(model))
    require_request(request)
    capabilities = choose_backend(request.backend).capabilities()
    libraries = request.plugins
    carried = embedded_in(model, dict(request.options))
    if capabilities.plugins and not carried:
        libraries = libraries_for_model(model, request.plugins, capabilities.version)
    files = (request.model, *(request.model.parent / name for name in external_files(model)))
    return {
        "model": {path.name: sha256_file(path) for path in files},
        "inputs": [str(s) for s in plan.inputs],
        "profiles": [{n: [list(s) for s in t] for n, t in p.items()} for p in plan.profiles],
        "pinned": [list(p) for p in plan.pinned],
        "precision": resolve_precision(model, request.precision),
        "workspace": request.workspace,
        "opt_level": request.opt_level,
        "compute_capabilities": list(request.compute_capabilities),
        "options": {k: str(v) for k, v in request.options},
        "plugins": {p.name: sha256_file(p) for p in libraries},
        "plugin_kernels": source_hash() if carried else "",
        "trtconv": trtconv.__version__,
        "manifest": MANIFEST_SCHEMA,
        **_place(capabilities),
    }


def _place(capabilities: Capabilities) -> dict[str, Any]:
    """The library, and the GPU where the builder measures on one; an engine that is built without one fits all."""
    place: dict[str, Any] = {"backend": f"{capabilities.name} {capabilities.version}"}
    if not capabilities.needs_gpu_to_build:
        return place
    state = probe_cuda()
    if state.gpus:
        gpu = state.gpus[0]
        place |= {"gpu": gpu.name, "compute_capability": gpu.compute_capability, "driver": state.driver}
    return place


def _restored(cache: EngineCache, entry: Entry, request: BuildRequest, start: float) -> BuildResult | None:
    """Engine and manifest at the asked place, or None when the entry turned out to be damaged."""
    try:
        cache.fetch(entry, request.output)
    except (InvalidRequestError, OSError):
        cache.remove(entry.key)
        return None
    path: Path = manifest_path(request.output)
    write_json(path, entry.kept["manifest"])
    try:
        manifest = read_engine_manifest(request.output, verify=False)
    except InvalidRequestError:
        # Kept by a trtconv whose manifests had another form; the engine is built again over it.
        cache.remove(entry.key)
        return None
    return BuildResult(
        engine=request.output, manifest=path, backend=manifest.backend, version=manifest.version,
        profiles=manifest.profiles, engine_bytes=manifest.engine_bytes, seconds=time.monotonic() - start,
        messages=manifest.messages, layers=manifest.layers,
    )  # fmt: skip
