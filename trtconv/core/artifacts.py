"""Files that are either the old ones or the new ones: written under a temporary name beside the target and renamed."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError


def require_file(path: Path, what: str) -> Path:
    """Return `path` when it is a readable file; raise InvalidRequestError naming `what` it should be."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        # torch and ONNX Runtime take no other names.
        shown = str(path).encode(errors="replace").decode()
        raise InvalidRequestError(f"the name of {what} '{shown}' is not UTF-8", hint="rename it") from error
    if path.is_dir():
        raise InvalidRequestError(f"{what} '{path}' is a directory", hint="name the file inside it")
    if not path.exists():
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        raise InvalidRequestError(
            f"there is no {what} '{path}'",
            hint=f"files of that kind there: {', '.join(near[:5])}" if near else "check the path",
        )
    if not os.access(path, os.R_OK):
        raise InvalidRequestError(f"{what} '{path}' cannot be read", hint="check its permissions")
    return path


def require_writable(path: Path) -> Path:
    """Raise InvalidRequestError early when a file could not be written there. No file or folder is left by it."""
    try:
        if path.is_dir():
            raise InvalidRequestError(f"the output '{path}' is a directory", hint="name a file")
        there = next(p for p in path.parents if p.exists())
        with tempfile.NamedTemporaryFile(dir=there, prefix=f".{path.name}."):
            pass
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def out_of_space(error: BaseException | None) -> OSError | None:
    """The error of a full disk, a quota or a file size limit, itself or behind those that were raised from it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return error
        error = error.__cause__ or error.__context__
    return None


def unwritable(path: Path, error: OSError) -> InvalidRequestError:
    """The one error for a file that could not be written."""
    hint = "free some space, or choose another place" if out_of_space(error) else "choose another place"
    return InvalidRequestError(f"the output '{path}' cannot be written: {error.strerror or error}", hint=hint)


@contextmanager
def made_folder(folder: Path) -> Iterator[Path]:
    """Make a folder and those above it. What is new and still empty at the end, since something failed, goes away."""
    new = [p for p in (folder, *folder.parents) if not p.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    finally:
        with suppress(OSError):
            for made in new:
                made.rmdir()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside `path`; rename it over `path` when the block ends well, remove it otherwise.

    The suffixes are kept, since some writers choose a format by them. The file is flushed to disk before the
    rename, so that a crash of the machine leaves the old or the new content. Raises InvalidRequestError when the
    place cannot be written or is full.
    """
    require_writable(path)
    try:
        with made_folder(path.parent):
            handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}.", suffix=path.suffix)
            os.close(handle)
            temporary = Path(name)
            try:
                yield temporary
                with open(temporary, "rb") as written:
                    os.fsync(written.fileno())
                mask = os.umask(0)
                os.umask(mask)
                os.chmod(temporary, 0o666 & ~mask)
                os.replace(temporary, path)
            finally:
                temporary.unlink(missing_ok=True)
    except OSError as error:
        raise unwritable(path, error) from error


def write_bytes(path: Path, data: bytes | memoryview) -> None:
    """Write bytes atomically."""
    with replacing(path) as temporary:
        temporary.write_bytes(data)


def write_text(path: Path, text: str) -> None:
    """Write UTF-8 text atomically."""
    write_bytes(path, text.encode())


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically, with sorted keys, so that equal content gives equal bytes."""
    write_text(path, json.dumps(data, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n")


def read_json(path: Path, what: str = "file") -> dict[str, Any]:
    """Read a JSON object; raise InvalidRequestError when it is missing or broken."""
    require_file(path, what)
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("it holds no object")
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidRequestError(f"{what} '{path}' is not readable JSON: {error}", hint="make it again") from error
    return data


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex."""
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()


def beside(path: Path, suffix: str) -> Path:
    """The companion of an artifact: `beside(out/model.trt.onnx, '.rewrites.json')` is `out/model.rewrites.json`."""
    name = path.name
    for tail in (".trt.onnx", ".onnx", ".engine", ".plan"):
        if name.endswith(tail):
            name = name[: -len(tail)]
            break
    return path.with_name(name + suffix)


def manifest_path(path: Path) -> Path:
    """The manifest of an artifact: `model.onnx` has `model.onnx.json`."""
    return path.with_name(path.name + ".json")
