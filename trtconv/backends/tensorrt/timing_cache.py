"""The timing cache: one file for any number of TensorRT versions, GPUs and settings, shared by parallel builds.

TensorRT refuses a cache of another version or device, so each lies under its own key in a zip archive. A build
merges what it measured into what is in the file by then, under a file lock, and renames the new file into place.
"""

from __future__ import annotations

import hashlib
import json
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.core.artifacts import replacing
from trtconv.core.errors import InvalidRequestError

_LOCK_TIMEOUT_S = 60
_STAMP = (1980, 1, 1, 0, 0, 0)


@dataclass(frozen=True)
class CacheKey:
    """Everything that makes measured times comparable."""

    facts: tuple[tuple[str, str], ...]

    @property
    def entry(self) -> str:
        """The name of the cache inside the archive."""
        return hashlib.sha256(json.dumps(self.facts).encode()).hexdigest()[:24] + ".timing"


def cache_key(capabilities: Capabilities, gpu: Gpu, driver: str, settings: EngineSettings) -> CacheKey:
    """Version, GPU, CUDA driver, and the settings that change which kernels are tried."""
    flags = {k: str(settings.options[k]) for k in ("tf32", "refit", "sparse_weights") if k in settings.options}
    facts = {
        "tensorrt": capabilities.version, "gpu": gpu.name, "uuid": gpu.uuid,
        "compute_capability": gpu.compute_capability, "driver": driver, "precision": settings.precision, **flags,
    }  # fmt: skip
    return CacheKey(tuple(sorted(facts.items())))


def read_cache(path: Path, key: CacheKey) -> bytes:
    """The cache stored under a key; empty when there is none. Raises InvalidRequestError for another kind of file."""
    if not path.exists():
        return b""
    try:
        with zipfile.ZipFile(path) as archive:
            return archive.read(key.entry) if key.entry in archive.namelist() else b""
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise InvalidRequestError(
            f"'{path}' is no timing cache of trtconv: {error}", hint="remove it, or name another file"
        ) from error


def attach_cache(config: Any, path: Path, key: CacheKey) -> bytes:
    """Give a configuration the stored cache, or an empty one; returns the bytes that were stored."""
    stored = read_cache(path, key)
    # A stored cache that TensorRT does not take after all is replaced, not trusted.
    if not (stored and config.set_timing_cache(config.create_timing_cache(stored), False)):
        config.set_timing_cache(config.create_timing_cache(b""), False)
        return b""
    return stored


def merge_cache(config: Any, path: Path, key: CacheKey, before: bytes) -> int:
    """Merge what the build measured into the file; returns the bytes stored under the key now."""
    from filelock import FileLock, Timeout

    measured = config.get_timing_cache()
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(path.with_name(path.name + ".lock"), timeout=_LOCK_TIMEOUT_S):
            present = read_cache(path, key)
            if present and present != before:
                measured.combine(config.create_timing_cache(present), False)
            blob = bytes(memoryview(measured.serialize()))
            _rewrite(path, key, blob)
    except Timeout as error:
        raise InvalidRequestError(f"the timing cache '{path}' is locked by another process") from error
    return len(blob)


def _rewrite(path: Path, key: CacheKey, blob: bytes) -> None:
    entries: dict[str, bytes] = {}
    if path.exists():
        with zipfile.ZipFile(path) as archive:
            entries = {name: archive.read(name) for name in archive.namelist()}
    entries[key.entry] = blob
    entries[key.entry.replace(".timing", ".json")] = json.dumps(dict(key.facts), sort_keys=True).encode()
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _STAMP), entries[name])
