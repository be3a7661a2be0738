"""`build_cached`: the engine from the cache when it was built before, else built and kept.

Two builds are the same when their `ResolvedBuild` has the same digest; see `trtconv.build.resolve`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.backends.protocol import Profile
from trtconv.backends.tensorrt.manifest import EngineManifest, parse_engine_manifest
from trtconv.build.cache.store import CacheEntry, EngineCache, Lookup
from trtconv.build.engine import BuildResult, build_engine, build_resolved
from trtconv.build.resolve import resolve_build
from trtconv.core.artifacts import manifest_path, read_json, write_json
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.set_lock import locked_set
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import BuildRequest


@dataclass(frozen=True)
class CachedBuild:
    """The result, whether it came from the cache, and a sentence on why (or what changed since the nearest engine)."""

    result: BuildResult
    hit: bool
    reason: str


def build_cached(request: BuildRequest, progress: Progress | None = None, *, cache: EngineCache | None) -> CachedBuild:
    """Build as `build_engine` does, answered from `cache` where that holds the engine; None builds in any case.

    Raises what `build_engine` raises. A cache that cannot be read or written costs a warning, not the build; one that
    other users can write to raises UnsafeFolderError, and a folder that is not a cache InvalidRequestError.
    """
    progress = progress or SilentProgress()
    with locked_set(request.output):
        return _build(request, progress, cache)


def _build(request: BuildRequest, progress: Progress, cache: EngineCache | None) -> CachedBuild:
    if cache is None:
        return CachedBuild(build_engine(request, progress), False, "the engine cache is off")
    progress.phase("looking into the engine cache")
    resolved = resolve_build(request)
    parts = resolved.key_parts()
    start = time.monotonic()
    lookup = _restore(cache, parts, request)
    if lookup.warning:
        progress.warn(lookup.warning)
    if lookup.entry is not None:
        reason = f"from the engine cache ({lookup.entry.key[:12]}), its bytes compared with their hash"
        progress.note(reason)
        return CachedBuild(_finish(lookup.entry, request, start), True, reason)
    progress.note(lookup.reason)
    built = build_resolved(resolved, progress)
    try:
        data = read_json(built.manifest, "engine manifest", "build the engine again")
        cache.store(parts, built.engine, {"manifest": data}, sha256=str(data["engine_sha256"]))
    except (OSError, InvalidRequestError) as error:
        progress.warn(f"the engine was not kept in the cache '{cache.root}': {error}")
    return CachedBuild(built, False, lookup.reason)


def _profiles_json(profiles: tuple[Profile, ...]) -> list[dict[str, list[list[int]]]]:
    return [{n: [list(s) for s in t] for n, t in p.items()} for p in profiles]


def _restore(cache: EngineCache, parts: Mapping[str, Any], request: BuildRequest) -> Lookup:
    """Put the engine into place; a cache that cannot be read is a miss, one that must not be trusted is an error."""
    try:
        return cache.restore(parts, request.output, lambda entry: contradiction(entry, parts))
    except OSError as error:
        # Storing will warn, if that fails as well.
        return Lookup(None, f"the engine cache '{cache.root}' cannot be read: {error.strerror or error}")


def contradiction(entry: CacheEntry, parts: Mapping[str, Any]) -> str:
    """In what the manifest of a cached engine contradicts the engine or the request; "" when it fits both."""
    try:
        manifest = _manifest_of(entry)
    except InvalidRequestError as error:
        return error.message
    facts = {
        "engine": (manifest.engine_sha256, entry.sha256),
        "size": (manifest.engine_bytes, entry.engine_bytes),
        "model": (manifest.model_files, parts["model"]),
        "backend": (f"{manifest.backend} {manifest.version}", parts["backend"]),
        "precision": (manifest.precision, parts["precision"]),
        "plugins": (manifest.plugins, parts["plugins"]),
        "profiles": (_profiles_json(manifest.profiles), parts["profiles"]),
        "inputs": ([str(s) for s in manifest.inputs], parts["inputs"]),
        "optimization level": (manifest.opt_level, parts["opt_level"]),
        "workspace": (manifest.workspace, parts["workspace"]),
        "options": ({k: str(v) for k, v in manifest.options.items()}, parts["options"]),
    }
    wrong = [name for name, (recorded, expected) in facts.items() if recorded != expected]
    return f"its manifest contradicts it in: {', '.join(wrong)}" if wrong else ""


def _manifest_of(entry: CacheEntry) -> EngineManifest:
    data = entry.payload.get("manifest")
    if not isinstance(data, dict):
        raise InvalidRequestError("it holds no manifest")
    return parse_engine_manifest(data, entry.engine)


def _finish(entry: CacheEntry, request: BuildRequest, start: float) -> BuildResult:
    """Write the manifest beside the restored engine."""
    path: Path = manifest_path(request.output)
    write_json(path, entry.payload["manifest"])
    manifest = _manifest_of(entry)
    return BuildResult(
        engine=request.output,
        manifest=path,
        backend=manifest.backend,
        version=manifest.version,
        profiles=manifest.profiles,
        engine_bytes=manifest.engine_bytes,
        seconds=time.monotonic() - start,
        messages=manifest.messages,
        layers=manifest.layers,
    )
