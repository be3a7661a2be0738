"""The results of jobs by key: their files by the SHA-256 of their content, and a record that names them.

The record is written last, so that a result is there with all its files or not at all. Equal files of several results
(weights, references) are kept once. Nothing here takes a lock.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trtconv.core.errors import TrtconvError
from trtconv.core.files.digest import sha256_file
from trtconv.sweep.store.storage import Storage

SCHEMA = 1


class DamagedResultError(TrtconvError):
    """A file of a result is gone or is not what was stored; its record was removed, so that the job runs again."""


@dataclass(frozen=True)
class StoredFile:
    """A file by its name in the job's folder, the SHA-256 of its content in hex, and its size in bytes."""

    name: str
    sha256: str
    size: int

    def as_list(self) -> list[Any]:
        """Plain data."""
        return [self.name, self.sha256, self.size]


@dataclass(frozen=True)
class Result:
    """What a job that succeeded left: its files, and facts for the ledger and the atlas."""

    files: tuple[StoredFile, ...]
    facts: Mapping[str, Any] = field(default_factory=dict)


class Store:
    """Results in a `Storage`. Methods raise OSError as that does."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    def has(self, key: str) -> bool:
        """True when the key has a result."""
        return self._storage.has(_record(key))

    def result(self, key: str) -> Result | None:
        """The result of a key, or None."""
        try:
            data = json.loads(self._storage.read(_record(key)))
        except FileNotFoundError:
            return None
        except ValueError:
            self._storage.remove(_record(key))
            return None
        return Result(tuple(StoredFile(*f) for f in data["files"]), data["facts"])

    def keep_files(self, paths: Iterable[Path]) -> tuple[StoredFile, ...]:
        """Store files by their content; they belong to no result yet."""
        stored = []
        for path in paths:
            file = StoredFile(path.name, sha256_file(path), path.stat().st_size)
            name = _content(file.sha256)
            if not self._storage.put(name, path) and not self._storage.is_whole(name, file.sha256, file.size):
                self._storage.remove(name)
                self._storage.put(name, path)
            stored.append(file)
        return tuple(stored)

    def publish(self, key: str, files: Iterable[StoredFile], facts: Mapping[str, Any]) -> bool:
        """Make files that `keep_files` stored the result of a key; False when it has one, which stays."""
        data = {"schema": SCHEMA, "files": [f.as_list() for f in files], "facts": dict(facts)}
        return self._storage.put_bytes(_record(key), json.dumps(data, sort_keys=True).encode())

    def fetch(self, key: str, folder: Path) -> None:
        """Put the files of a result into a folder, each compared with its hash. Raises DamagedResultError."""
        result = self.result(key)
        if result is None:
            raise DamagedResultError(f"the store has no result {key[:12]}", hint="run the sweep again with --resume")
        for file in result.files:
            try:
                self.fetch_file(file, folder / file.name)
            except DamagedResultError:
                self._storage.remove(_record(key))
                raise

    def fetch_file(self, file: StoredFile, target: Path) -> None:
        """Copy one file out and compare it with its hash. Raises DamagedResultError; a damaged file is removed."""
        try:
            self._storage.fetch(_content(file.sha256), target)
        except FileNotFoundError as error:
            raise DamagedResultError(f"'{file.name}' ({file.sha256[:12]}) is gone from the store") from error
        if sha256_file(target) != file.sha256:
            target.unlink()
            self._storage.remove(_content(file.sha256))
            raise DamagedResultError(f"'{file.name}' ({file.sha256[:12]}) is damaged in the store")

    def add_sources(self, key: str, sources: Mapping[str, str]) -> str:
        """Note which files (path -> SHA-256) a job of this key read besides those in it; returns the key with them."""
        text = json.dumps(sorted(sources.items()))
        full = source_key(key, sources)
        self._storage.put_bytes(f"sources/{key}/{full}", text.encode())
        return full

    def sources(self, key: str) -> list[dict[str, str]]:
        """What was noted for a key, each set of files once."""
        folder = f"sources/{key}"
        return [dict(json.loads(self._storage.read(f"{folder}/{n}"))) for n in self._storage.names(folder)]


def source_key(key: str, sources: Mapping[str, str]) -> str:
    """The key of a job that read these files besides those in `key`."""
    from trtconv.sweep.store.keys import hash_parts

    return hash_parts({"job": key, "sources": sorted(sources.items())})


def _content(sha256: str) -> str:
    return f"content/{sha256[:2]}/{sha256}"


def _record(key: str) -> str:
    return f"results/{key[:2]}/{key}.json"
