"""One entry: a folder named by its key with `engine`, `manifest.json` and `entry.json`, which lists the other two.

Everything is read through the descriptor of the entry's folder, without following links, and hashed while it is read:
the bytes that are handed out are the bytes that were compared. An entry never changes once it has its name.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import IO, Any, BinaryIO

from trtconv.core.files.private_folder import WRITABLE_BY_OTHERS, belongs_to_current_user
from trtconv.core.text.json_text import parse_json

SCHEMA = 2
ENGINE, MANIFEST, RECORD = "engine", "manifest.json", "entry.json"
FILES = frozenset({ENGINE, MANIFEST, RECORD})
KEY_FORM = re.compile(r"[0-9a-f]{64}")
# Far over what a record (a few KiB) and an engine's manifest take.
JSON_LIMIT = 64 << 20
_CHUNK = 1 << 20
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class MalformedEntryError(Exception):
    """What has the name of an entry does not have the form of one."""


class DamagedEntryError(Exception):
    """The bytes of an entry are not the recorded ones."""


@dataclass(frozen=True)
class Part:
    """A file of an entry: its size in bytes and the SHA-256 of its content, in hex."""

    size: int
    sha256: str

    def __post_init__(self) -> None:
        if self.size < 0 or not KEY_FORM.fullmatch(self.sha256):
            raise ValueError("a file needs a size and a SHA-256")


@dataclass(frozen=True)
class EntryRecord:
    """The content of `entry.json`: what the engine was built from, and the entry's other files."""

    schema: int
    request: dict[str, Any]
    files: dict[str, Part]

    def __post_init__(self) -> None:
        if self.schema != SCHEMA or set(self.files) != {ENGINE, MANIFEST}:
            raise ValueError(f"schema {SCHEMA} with '{ENGINE}' and '{MANIFEST}' was expected")


@dataclass(frozen=True)
class CacheEntry:
    """A cached engine. `used` is when it was last written or handed out, in seconds since the epoch.

    `kept` is what the builder stored beside the engine (its manifest); it is read for a hit alone.
    """

    key: str
    engine: Path
    parts: Mapping[str, Any]
    sha256: str
    engine_bytes: int
    used: float
    payload: Mapping[str, Any] = field(default_factory=dict)


def cache_key(parts: Mapping[str, Any]) -> str:
    """The hash of the parts; equal parts give equal keys whatever their order."""
    text = json.dumps(plain(parts), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(f"{SCHEMA}:{text}".encode()).hexdigest()


def plain(parts: Mapping[str, Any]) -> dict[str, Any]:
    """The parts as JSON gives them back."""
    data: dict[str, Any] = json.loads(json.dumps(parts, default=str))
    return data


@dataclass(frozen=True)
class OpenEntry:
    """An entry that is being read: renaming or replacing it does not change what comes out of this one."""

    key: str
    folder: Path
    descriptor: int
    record: EntryRecord
    used: float

    @property
    def inode(self) -> int:
        """Tells this entry from another one under the same name."""
        return os.fstat(self.descriptor).st_ino

    def entry(self, payload: Mapping[str, Any] | None = None) -> CacheEntry:
        """The facts about it."""
        part = self.record.files[ENGINE]
        return CacheEntry(
            self.key, self.folder / ENGINE, self.record.request, part.sha256, part.size, self.used, payload or {}
        )

    @contextmanager
    def open_part(self, name: str) -> Iterator[BinaryIO]:
        """One file of it. Raises DamagedEntryError when its size is another, FileNotFoundError when it is gone."""
        with _open_regular(self.descriptor, name) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size != self.record.files[name].size:
                raise DamagedEntryError(f"'{name}' has {size} bytes instead of {self.record.files[name].size}")
            yield stream

    def copy(self, name: str, stream: BinaryIO, target: IO[bytes] | None) -> None:
        """Copy a part and compare it on the way. Raises DamagedEntryError when the content is not the recorded one."""
        part, digest, size = self.record.files[name], hashlib.sha256(), 0
        while chunk := _read_chunk(stream, name):
            digest.update(chunk)
            size += len(chunk)
            if size > part.size:
                break
            if target is not None:
                target.write(chunk)
        if size != part.size or digest.hexdigest() != part.sha256:
            raise DamagedEntryError(f"'{name}' is not what was stored: its hash differs")

    def read_kept(self) -> dict[str, Any]:
        """The JSON object that was stored beside the engine, compared with its hash."""
        part = self.record.files[MANIFEST]
        if part.size > JSON_LIMIT:
            raise DamagedEntryError(f"'{MANIFEST}' has {part.size} bytes")
        with self.open_part(MANIFEST) as stream:
            data = stream.read(part.size + 1)
        if hashlib.sha256(data).hexdigest() != part.sha256:
            raise DamagedEntryError(f"'{MANIFEST}' is not what was stored: its hash differs")
        try:
            value = parse_json(data)
        except (ValueError, RecursionError) as error:
            raise DamagedEntryError(f"'{MANIFEST}' is not JSON") from error
        if not isinstance(value, dict):
            raise DamagedEntryError(f"'{MANIFEST}' holds no object")
        return value

    def touch(self) -> None:
        """Set the time of its last use to now."""
        os.utime(RECORD, dir_fd=self.descriptor, follow_symlinks=False)


@contextmanager
def open_entry(root: Path, key: str) -> Iterator[OpenEntry]:
    """Open an entry and read its record.

    Raises FileNotFoundError when there is none, MalformedEntryError when what is there is not an entry.
    """
    descriptor, record, used = _open_named(root / key, key)
    try:
        yield OpenEntry(key, root / key, descriptor, record, used)
    finally:
        os.close(descriptor)


def _open_named(folder: Path, key: str) -> tuple[int, EntryRecord, float]:
    """The folder's descriptor, its record and the time of its last use.

    A folder that lost its name while it was read is being removed, and shows less and less of its files: whether it
    is an entry is then asked of the one that has the name now.
    """
    while True:
        try:
            descriptor = os.open(folder, _READ | os.O_DIRECTORY)
        except FileNotFoundError:
            raise
        except OSError as error:
            raise MalformedEntryError("it is not a folder that can be read") from error
        try:
            return descriptor, *_read_form(descriptor, key)
        except BaseException as error:
            replaced = isinstance(error, (MalformedEntryError, OSError)) and not _has_name(descriptor, folder)
            os.close(descriptor)
            if not replaced:
                raise


def _has_name(descriptor: int, folder: Path) -> bool:
    try:
        named = os.lstat(folder)
    except OSError:
        return False
    return os.path.samestat(named, os.fstat(descriptor))


def _read_form(descriptor: int, key: str) -> tuple[EntryRecord, float]:
    _require_own(os.fstat(descriptor), "the folder")
    names = set(os.listdir(descriptor))
    if names != FILES:
        raise MalformedEntryError(_wrong_names(names))
    for name in sorted(FILES):
        _require_regular(os.stat(name, dir_fd=descriptor, follow_symlinks=False), name)
    record, used = _read_record(descriptor)
    try:
        fits = cache_key(record.request) == key
    except (ValueError, RecursionError) as error:
        raise MalformedEntryError(f"'{RECORD}' has a request that cannot be hashed") from error
    if not fits:
        raise MalformedEntryError(f"'{RECORD}' describes another request than its name")
    return record, used


def write_entry(
    folder: Path, engine: Path, request: Mapping[str, Any], payload: Mapping[str, Any], sha256: str | None
) -> None:
    """Fill an empty folder with an entry, hashing the engine while it is copied; all files get mode 0600.

    Raises DamagedEntryError when `sha256` is given and the engine's bytes have another one.
    """
    with open(engine, "rb") as source, _create(folder / ENGINE) as target:
        digest, size = hashlib.sha256(), 0
        while chunk := source.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
            target.write(chunk)
    if sha256 is not None and digest.hexdigest() != sha256:
        raise DamagedEntryError(f"'{engine}' changed after it was built")
    data = json.dumps(payload, default=str).encode()
    files = {ENGINE: Part(size, digest.hexdigest()), MANIFEST: Part(len(data), hashlib.sha256(data).hexdigest())}
    for name, content in (
        (MANIFEST, data),
        (RECORD, json.dumps(asdict(EntryRecord(SCHEMA, plain(request), files))).encode()),
    ):
        with _create(folder / name) as target:
            target.write(content)


def _create(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb")


@contextmanager
def _open_regular(folder: int, name: str) -> Iterator[BinaryIO]:
    try:
        descriptor = os.open(name, _READ, dir_fd=folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise MalformedEntryError(f"'{name}' is not a regular file that can be read") from error
    with os.fdopen(descriptor, "rb") as stream:
        _require_regular(os.fstat(descriptor), name)
        yield stream


def _require_regular(status: os.stat_result, name: str) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise MalformedEntryError(f"'{name}' is not a regular file")
    _require_own(status, f"'{name}'")


def _require_own(status: os.stat_result, what: str) -> None:
    if not belongs_to_current_user(status):
        raise MalformedEntryError(f"{what} belongs to another user")
    if status.st_mode & WRITABLE_BY_OTHERS:
        raise MalformedEntryError(f"other users can write to {what}")


def _read_chunk(stream: BinaryIO, name: str) -> bytes:
    try:
        return stream.read(_CHUNK)
    except OSError as error:
        raise DamagedEntryError(f"'{name}' cannot be read: {error.strerror}") from error


def _read_record(descriptor: int) -> tuple[EntryRecord, float]:
    from pydantic import ValidationError

    with _open_regular(descriptor, RECORD) as stream:
        status = os.fstat(stream.fileno())
        if status.st_size > JSON_LIMIT:
            raise MalformedEntryError(f"'{RECORD}' has {status.st_size} bytes")
        data = stream.read(JSON_LIMIT + 1)
    try:
        return _adapter().validate_json(data, strict=True), status.st_mtime
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise MalformedEntryError(f"'{RECORD}' is not a record{f' at {at}' if at else ''}: {first['msg']}") from error


@cache
def _adapter() -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(EntryRecord)


def _wrong_names(names: set[str]) -> str:
    missing, more = sorted(FILES - names), sorted(names - FILES)
    return f"it lacks '{missing[0]}'" if missing else f"it holds {more[0]!a} as well"
