"""Timing caches in the store: what one build measured, the next one need not, on whatever machine it runs.

A build starts from all caches of its scope and leaves one that holds them and what it measured. Nobody takes a lock:
each cache is a file under the hash of its content, and names those that it took up. Of caches that nobody took up there
may be several, after builds side by side; the next build unites them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from trtconv.backends.tensorrt.timing_cache import unite_caches
from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.digest import sha256_file
from trtconv.sweep.store.storage import Storage


def fetch_timings(storage: Storage, scope: str, target: Path) -> tuple[str, ...]:
    """Write the caches of a scope to `target` as one file; returns their hashes, none where there is nothing to write.

    What another build took up and removed meanwhile, or is damaged, is left out.
    """
    names: list[str] = []
    paths: list[Path] = []
    for name in _heads(storage, scope):
        path = target.with_name(f"{target.name}.{len(paths)}")
        try:
            storage.fetch(_cache(scope, name), path)
        except FileNotFoundError:
            continue
        if sha256_file(path) != name:
            _remove(storage, scope, name)
            continue
        names.append(name)
        paths.append(path)
    try:
        if paths:
            unite_caches(paths, target)
    except InvalidRequestError:
        # Whole, but written by something else: it is left to whoever wrote it.
        return ()
    finally:
        for path in paths:
            path.unlink(missing_ok=True)
    return tuple(names)


def publish_timings(storage: Storage, scope: str, path: Path, merged: Sequence[str]) -> None:
    """Store the cache that a build left at `path`, if it is a new one; `merged` are those that it took up."""
    if not path.is_file():
        return
    name = sha256_file(path)
    if name in merged:
        return
    storage.put(_cache(scope, name), path)
    # The record is last: a cache without one is not there.
    storage.put_bytes(_record(scope, name), json.dumps({"merged": sorted(merged)}).encode())
    for old in merged:
        _remove(storage, scope, old)


def _heads(storage: Storage, scope: str) -> list[str]:
    """The caches of a scope that no other one took up."""
    merged: set[str] = set()
    names = [n.removesuffix(".json") for n in storage.names(f"timings/{scope}") if n.endswith(".json")]
    for name in names:
        try:
            merged |= set(json.loads(storage.read(_record(scope, name)))["merged"])
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            continue
    return [n for n in names if n not in merged]


def _remove(storage: Storage, scope: str, name: str) -> None:
    storage.remove(_record(scope, name))
    storage.remove(_cache(scope, name))


def _record(scope: str, name: str) -> str:
    return f"timings/{scope}/{name}.json"


def _cache(scope: str, name: str) -> str:
    return f"timings/{scope}/{name}.cache"
