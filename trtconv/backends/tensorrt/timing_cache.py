"""The timing cache: one file for any number of TensorRT versions, GPUs and settings, shared by parallel builds.

TensorRT refuses a cache of another version or device, so each lies under its own key in a zip archive. A build
merges what it measured into what is in the file by then, under a file lock, and renames the new file into place.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trtconv.backends.cuda.driver import Gpu
from trtconv.backends.protocol import Capabilities, EngineSettings
from trtconv.core.artifacts import replacing
from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import TF32

_LOCK_TIMEOUT_S = 60
_ENTRY_FORM = re.compile(r"[0-9a-f]{24}\.(timing|json)")
# Some MiB in practice; an archive can claim anything.
_ENTRY_LIMIT = 256 << 20
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
    flags = {k: str(settings.options[k]) for k in (TF32.name, "refit", "sparse_weights") if k in settings.options}
    facts = {
        "tensorrt": capabilities.version, "gpu": gpu.name, "uuid": gpu.uuid,
        "compute_capability": gpu.compute_capability, "driver": driver, "precision": settings.precision, **flags,
    }  # fmt: skip
    return CacheKey(tuple(sorted(facts.items())))


def read_cache(path: Path, key: CacheKey) -> bytes:
    """The cache stored under a key; empty when there is none, or when its bytes are damaged.

    Raises InvalidRequestError for another kind of file.
    """
    if not path.exists():
        return b""
    with _opened(path) as archive:
        return _read_entry(archive, key.entry) or b""


@contextmanager
def _opened(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive; one with members that are not trtconv's would be rewritten, and is refused like any other file."""
    try:
        # Opening a FIFO or a device could wait for ever.
        if not path.is_file():
            raise ValueError("it is not a regular file")
        with zipfile.ZipFile(path) as archive:
            other = next((n for n in archive.namelist() if not _ENTRY_FORM.fullmatch(n)), None)
            if other is not None:
                raise ValueError(f"it holds {other!a}")
            yield archive
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, EOFError, struct.error) as error:
        raise InvalidRequestError(
            f"'{path}' is not a timing cache of trtconv: {error}", hint="remove it, or name another file"
        ) from error


def _read_entry(archive: zipfile.ZipFile, name: str) -> bytes | None:
    """A member's bytes, or None when there is no such member or it is damaged: what it held is then measured again."""
    try:
        if archive.getinfo(name).file_size > _ENTRY_LIMIT:
            return None
        return archive.read(name)
    except Exception:  # noqa: BLE001 - a wrong checksum, method, flag or stream: zipfile and its codecs raise ten kinds
        return None


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
        with _opened(path) as archive:
            stored = {name: _read_entry(archive, name) for name in archive.namelist()}
            entries = {name: data for name, data in stored.items() if data is not None}
    entries[key.entry] = blob
    entries[key.entry.replace(".timing", ".json")] = json.dumps(dict(key.facts), sort_keys=True).encode()
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _STAMP), entries[name])
