"""Files under names that never change their content: a folder, or anything that fsspec can open.

`put` makes a file appear whole or not at all, and leaves one that is there already: the first writer wins.
"""

from __future__ import annotations

import os
import secrets
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from trtconv.core.errors import InvalidRequestError, MissingDependencyError
from trtconv.core.files.digest import sha256_file


class Storage(Protocol):
    """Names are relative and have `/` in them. Reading raises FileNotFoundError, all raise OSError."""

    def put(self, name: str, source: Path) -> bool:
        """Copy a file to a name that has none yet; False when it has, then nothing is changed."""

    def put_bytes(self, name: str, data: bytes) -> bool:
        """The same for bytes."""

    def fetch(self, name: str, target: Path) -> None:
        """Copy a file out."""

    def read(self, name: str) -> bytes:
        """The content of a small file."""

    def has(self, name: str) -> bool:
        """True when the name has a file."""

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder, without it; empty when there is none."""

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""

    def is_whole(self, name: str, sha256: str, size: int) -> bool:
        """True when a file that is there is what it should be, as far as that can be told cheaply."""


class FolderStorage:
    """A folder, which several machines may share (NFS): a file is written under a temporary name and linked."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, name: str, source: Path) -> bool:
        """Copy, flush to disk, link; a link does not replace."""
        if self.has(name):
            return False
        temporary = self._temporary()
        try:
            shutil.copyfile(source, temporary)
            return self._publish(temporary, name)
        finally:
            temporary.unlink(missing_ok=True)

    def put_bytes(self, name: str, data: bytes) -> bool:
        """The same for bytes."""
        if self.has(name):
            return False
        temporary = self._temporary()
        try:
            temporary.write_bytes(data)
            return self._publish(temporary, name)
        finally:
            temporary.unlink(missing_ok=True)

    def fetch(self, name: str, target: Path) -> None:
        """Copied and not linked: a tool that writes into its input must not change the store."""
        shutil.copyfile(self.root / name, target)

    def read(self, name: str) -> bytes:
        """The content."""
        return (self.root / name).read_bytes()

    def has(self, name: str) -> bool:
        """True when the name has a file."""
        return (self.root / name).is_file()

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        try:
            return sorted(os.listdir(self.root / folder))
        except (FileNotFoundError, NotADirectoryError):
            return []

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        (self.root / name).unlink(missing_ok=True)

    def is_whole(self, name: str, sha256: str, size: int) -> bool:
        """All bytes are compared."""
        try:
            return sha256_file(self.root / name) == sha256
        except FileNotFoundError:
            return False

    def _temporary(self) -> Path:
        # In the root, since a link stays on one file system.
        folder = self.root / "temporary"
        folder.mkdir(parents=True, exist_ok=True)
        return folder / secrets.token_hex(12)

    def _publish(self, temporary: Path, name: str) -> bool:
        with open(temporary, "rb") as stream:
            os.fsync(stream.fileno())
        target = self.root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(temporary, target)
        except FileExistsError:
            return False
        except OSError:
            # A file system without links: a rename replaces a file of the same content.
            os.replace(temporary, target)
        _sync_folder(target.parent)
        return True


def _sync_folder(folder: Path) -> None:
    """Flush the name itself; not every file system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class RemoteStorage:
    """A URL that fsspec opens (s3://, gs://, memory://): there a file appears when all of it was uploaded.

    Two writers that come at once both write; equal names have equal content, so that either may stay.
    """

    def __init__(self, url: str) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MissingDependencyError(
                f"the store '{url}' needs fsspec", hint="pip install fsspec, and its package for that protocol"
            ) from error
        try:
            self._files: Any
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ImportError, ValueError) as error:
            raise InvalidRequestError(f"the store '{url}' cannot be opened: {error}") from error

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def put(self, name: str, source: Path) -> bool:
        """Upload a file."""
        if self.has(name):
            return False
        self._files.put_file(str(source), self._path(name))
        self._files.invalidate_cache()
        return True

    def put_bytes(self, name: str, data: bytes) -> bool:
        """Upload bytes."""
        if self.has(name):
            return False
        self._files.pipe_file(self._path(name), data)
        self._files.invalidate_cache()
        return True

    def fetch(self, name: str, target: Path) -> None:
        """Download a file."""
        self._files.get_file(self._path(name), str(target))

    def read(self, name: str) -> bytes:
        """The content."""
        data: bytes = self._files.cat_file(self._path(name))
        return data

    def has(self, name: str) -> bool:
        """True when the name has a file."""
        self._files.invalidate_cache()
        return bool(self._files.isfile(self._path(name)))

    def names(self, folder: str) -> list[str]:
        """The names of the files in a folder."""
        self._files.invalidate_cache()
        try:
            paths: list[str] = self._files.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return sorted(p.rpartition("/")[2] for p in paths)

    def remove(self, name: str) -> None:
        """Remove a file if it is there."""
        with suppress(FileNotFoundError):
            self._files.rm_file(self._path(name))
        self._files.invalidate_cache()

    def is_whole(self, name: str, sha256: str, size: int) -> bool:
        """The size is compared: the bytes would have to be downloaded."""
        try:
            return int(self._files.size(self._path(name))) == size
        except FileNotFoundError:
            return False


def open_storage(location: str) -> Storage:
    """A URL or the path of a folder. Raises MissingDependencyError without fsspec, InvalidRequestError otherwise."""
    if "://" in location:
        return RemoteStorage(location)
    path = Path(location)
    if path.exists() and not path.is_dir():
        raise InvalidRequestError(f"the store '{path}' is not a directory", hint="name a folder")
    return FolderStorage(path)
