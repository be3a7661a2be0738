"""Built engines by what they were built from: the same request is answered from disk, and a miss says what changed.

One folder per entry, named by the hash of its key: `engine`, and `entry.json` with the key's parts, the hash of the
engine and what the builder wants to keep (its manifest). An entry is made under another name and renamed, so that it
is there as a whole or not at all; a file lock serialises writers, readers need none. An engine whose bytes are not the
recorded ones is removed and built again.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.artifacts import replacing, sha256_file
from trtconv.core.errors import InvalidRequestError

SCHEMA = 1
DEFAULT_LIMIT = 20 << 30
VARIABLE = "TRTCONV_CACHE"
_OFF = ("off", "0", "no", "false")


@dataclass(frozen=True)
class Entry:
    """A cached engine. `used` is when it was last written or handed out, in seconds since the epoch."""

    key: str
    engine: Path
    parts: Mapping[str, Any]
    sha256: str
    engine_bytes: int
    used: float
    kept: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Lookup:
    """The entry, or None with the reason: which parts differ from the nearest entry, or that there is none."""

    entry: Entry | None
    reason: str = ""
    changed: tuple[str, ...] = ()


def default_root() -> Path | None:
    """Where engines are kept: `TRTCONV_CACHE` (a folder, or `off`), else the user's cache folder; None when off."""
    named = os.environ.get(VARIABLE, "")
    if named.lower() in _OFF and named:
        return None
    if named:
        return Path(named).expanduser()
    from platformdirs import user_cache_path

    return Path(user_cache_path("trtconv")) / "engines"


def user_cache() -> EngineCache | None:
    """The cache of this user, or None when it is off."""
    root = default_root()
    return EngineCache(root) if root is not None else None


def cache_key(parts: Mapping[str, Any]) -> str:
    """The hash of the parts; equal parts give equal keys whatever their order."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(f"{SCHEMA}:{text}".encode()).hexdigest()


class EngineCache:
    """The cache in one folder. Several processes may use it at once. `limit` is in bytes, over all engines."""

    def __init__(self, root: Path, limit: int = DEFAULT_LIMIT) -> None:
        self.root = root
        self.limit = limit

    def lookup(self, parts: Mapping[str, Any], *, verify: bool = True) -> Lookup:
        """The engine that was built from these parts, verified by its hash; or why there is none.

        Without `verify` only its size is looked at: `fetch` verifies what it copies.
        """
        folder = self.root / cache_key(parts)
        entry = _read(folder)
        if entry is None:
            return self._miss(parts)
        if not _is_whole(entry, hashed=verify):
            self.remove(entry.key)
            return Lookup(None, "the cached engine is damaged and was removed")
        try:
            os.utime(folder / "entry.json")
        except OSError:
            return self._miss(parts)
        return Lookup(entry)

    def fetch(self, entry: Entry, target: Path) -> None:
        """Put the engine at `target`, atomically; what arrived is verified, since another process may evict it."""
        with replacing(target) as temporary:
            shutil.copyfile(entry.engine, temporary)
            if sha256_file(temporary) != entry.sha256:
                raise InvalidRequestError(f"the cached engine '{entry.engine}' changed while it was read")

    def store(self, parts: Mapping[str, Any], engine: Path, kept: Mapping[str, Any] | None = None) -> Entry:
        """Keep a built engine; then evict what was used longest ago until the limit holds."""
        key = cache_key(parts)
        self.root.mkdir(parents=True, exist_ok=True)
        with self._locked():
            place = Path(tempfile.mkdtemp(dir=self.root, prefix=".new-"))
            try:
                shutil.copyfile(engine, place / "engine")
                data = {
                    "schema": SCHEMA, "parts": dict(parts), "sha256": sha256_file(place / "engine"),
                    "engine_bytes": (place / "engine").stat().st_size, "kept": dict(kept or {}),
                }  # fmt: skip
                (place / "entry.json").write_text(json.dumps(data, default=str), encoding="utf-8")
                old = self.root / key
                if old.exists():
                    shutil.rmtree(old)
                os.replace(place, old)
            finally:
                shutil.rmtree(place, ignore_errors=True)
            self._evict(key)
        entry = _read(self.root / key)
        if entry is None:
            raise InvalidRequestError(f"the engine cache '{self.root}' cannot be read back", hint="is the disk full?")
        return entry

    def entries(self) -> tuple[Entry, ...]:
        """All readable entries, last used first."""
        if not self.root.is_dir():
            return ()
        found = [_read(f) for f in self.root.iterdir() if f.is_dir() and not f.name.startswith(".")]
        return tuple(sorted((e for e in found if e is not None), key=lambda e: (-e.used, e.key)))

    def find(self, prefix: str) -> Entry:
        """The entry whose key begins so. Raises InvalidRequestError when none or several do."""
        hits = [e for e in self.entries() if e.key.startswith(prefix)]
        if len(hits) != 1:
            count = "no entry begins" if not hits else f"{len(hits)} entries begin"
            raise InvalidRequestError(f"{count} with '{prefix}'", hint="`trtconv cache ls` lists them")
        return hits[0]

    def remove(self, key: str) -> None:
        """Remove one entry; nothing happens when it is gone already."""
        with self._locked():
            _remove(self.root / key)

    def verify(self) -> tuple[tuple[Entry, bool], ...]:
        """Every entry with whether its engine is whole; damaged ones, and folders that are no entry, are removed."""
        found = tuple((e, _is_whole(e)) for e in self.entries())
        good = {e.key for e, whole in found if whole}
        if self.root.is_dir():
            with self._locked():
                for folder in self.root.iterdir():
                    if folder.is_dir() and folder.name not in good:
                        _remove(folder)
        return found

    def _evict(self, newest: str) -> None:
        kept = 0
        for entry in sorted(self.entries(), key=lambda e: e.key != newest):
            kept += entry.engine_bytes
            if kept > self.limit and entry.key != newest:
                kept -= entry.engine_bytes
                _remove(self.root / entry.key)
        hour_ago = time.time() - 3600
        for folder in self.root.glob(".new-*"):
            if folder.stat().st_mtime < hour_ago:
                _remove(folder)

    def _miss(self, parts: Mapping[str, Any]) -> Lookup:
        nearest: Entry | None = None
        changed: tuple[str, ...] = ()
        for entry in self.entries():
            differing = tuple(differences(entry.parts, parts))
            if nearest is None or len(differing) < len(changed):
                nearest, changed = entry, differing
        if nearest is None:
            return Lookup(None, "the cache is empty")
        return Lookup(None, f"not cached; changed since the nearest engine: {'; '.join(changed)}", changed)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        from filelock import FileLock, Timeout

        self.root.mkdir(parents=True, exist_ok=True)
        try:
            with FileLock(str(self.root / ".lock"), timeout=120):
                yield
        except Timeout as error:
            raise InvalidRequestError(
                f"the engine cache '{self.root}' is locked for two minutes", hint=f"set {VARIABLE} to another folder"
            ) from error


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """`options.tf32 False -> True`: what differs, nested mappings by their own names; of lists the name alone."""
    for name in sorted({*old, *new}):
        before, after = old.get(name), new.get(name)
        if isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{prefix}{name}.")
        elif json.dumps(before, default=str, sort_keys=True) != json.dumps(after, default=str, sort_keys=True):
            listed = any(isinstance(v, (list, tuple, Mapping)) for v in (before, after))
            yield f"{prefix}{name}" + ("" if listed else f" {_short(before)} -> {_short(after)}")


def _short(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    if len(text) == 64 and set(text) <= set("0123456789abcdef"):
        return text[:12]
    return text if len(text) <= 60 else text[:57] + "..."


def _read(folder: Path) -> Entry | None:
    try:
        data = json.loads((folder / "entry.json").read_text(encoding="utf-8"))
        used = (folder / "entry.json").stat().st_mtime
        if data["schema"] != SCHEMA or not (folder / "engine").is_file():
            return None
        return Entry(
            folder.name, folder / "engine", data["parts"], data["sha256"], int(data["engine_bytes"]), used, data["kept"]
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_whole(entry: Entry, *, hashed: bool = True) -> bool:
    try:
        if entry.engine.stat().st_size != entry.engine_bytes:
            return False
        return not hashed or sha256_file(entry.engine) == entry.sha256
    except OSError:
        return False


def _remove(folder: Path) -> None:
    """First out of the way by one rename, so that no reader sees half an entry."""
    gone = folder.with_name(f".gone-{os.getpid()}-{folder.name}")
    try:
        os.replace(folder, gone)
    except OSError:
        return
    shutil.rmtree(gone, ignore_errors=True)
