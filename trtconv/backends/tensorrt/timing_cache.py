"""The timing cache: one file for any number of TensorRT versions, GPUs and settings, shared by parallel builds.

TensorRT refuses a cache of another version or device, so each lies under its own key in a zip archive. A build
merges what it measured into what is in the file by then, under a file lock, and renames the new file into place.
Where machines share no lock, each writes a file of its own, and `unite_caches` lays them side by side: only a builder
can merge two caches of one key, so the next build does it.
"""

from __future__ import annotations

import hashlib
import json
import re
import struct
import zipfile
from collections.abc import Iterable, Iterator, Mapping
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
# A second cache of a key, not merged yet, has the digest of its bytes in its name.
_ENTRY_FORM = re.compile(r"[0-9a-f]{24}(\.[0-9a-f]{16})?\.(timing|json)")
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
    """Version, kind of GPU, CUDA driver, and the settings that change which kernels are tried.

    Not which GPU of its kind: a fleet's builds land on any of them.
    """
    flags = {k: str(settings.options[k]) for k in (TF32.name, "refit", "sparse_weights") if k in settings.options}
    facts = {
        "tensorrt": capabilities.version,
        "gpu": gpu.name,
        "compute_capability": gpu.compute_capability,
        "driver": driver,
        "precision": settings.precision,
        **flags,
    }
    return CacheKey(tuple(sorted(facts.items())))


def read_cache(path: Path, key: CacheKey) -> bytes:
    """The cache stored under a key; empty when there is none, or when its bytes are damaged.

    Raises InvalidRequestError for another kind of file.
    """
    if not path.exists():
        return b""
    with _opened(path) as archive:
        return _read_entry(archive, key.entry) or b""


def read_others(path: Path, key: CacheKey) -> tuple[bytes, ...]:
    """Caches of other builds under a key that were not merged into the first yet."""
    if not path.exists():
        return ()
    with _opened(path) as archive:
        names = [n for n in archive.namelist() if _is_other(n, key)]
        return tuple(data for name in names if (data := _read_entry(archive, name)))


def _is_other(name: str, key: CacheKey) -> bool:
    stem = key.entry.removesuffix(".timing")
    return name.startswith(f"{stem}.") and name.endswith(".timing") and name != key.entry


def unite_caches(paths: Iterable[Path], target: Path) -> None:
    """Write a file that holds the caches of all files; what two of them have under one key stays side by side.

    Raises InvalidRequestError for a file that is not a timing cache.
    """
    entries: dict[str, bytes] = {}
    for path in paths:
        with _opened(path) as archive:
            for name in archive.namelist():
                data = _read_entry(archive, name)
                if data is None:
                    continue
                if name.endswith(".timing") and entries.get(name, data) != data:
                    name = f"{name[:24]}.{hashlib.sha256(data).hexdigest()[:16]}.timing"
                entries[name] = data
    _write(target, entries)


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
        stored = b""
    for other in read_others(path, key):
        # One that TensorRT does not take is measured again.
        config.get_timing_cache().combine(config.create_timing_cache(other), False)
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
        raise InvalidRequestError(
            f"the timing cache '{path}' is locked by another process",
            hint="wait for it, or give this build a file of its own with --timing-cache",
        ) from error
    return len(blob)


def _rewrite(path: Path, key: CacheKey, blob: bytes) -> None:
    entries: dict[str, bytes] = {}
    if path.exists():
        with _opened(path) as archive:
            stored = {name: _read_entry(archive, name) for name in archive.namelist()}
            entries = {n: data for n, data in stored.items() if data is not None and not _is_other(n, key)}
    entries[key.entry] = blob
    entries[key.entry.replace(".timing", ".json")] = json.dumps(dict(key.facts), sort_keys=True).encode()
    _write(path, entries)


def _write(path: Path, entries: Mapping[str, bytes]) -> None:
    with replacing(path) as temporary, zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(entries):
            archive.writestr(zipfile.ZipInfo(name, _STAMP), entries[name])
