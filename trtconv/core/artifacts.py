"""The one writer: an output is either the old file or the new one, written under a temporary name and renamed.

A symbolic link stays: the file that it points at is replaced. A directory, device, FIFO or socket is refused; reports
alone (`write_report_text`, `write_report_json`) are written into a device or FIFO, such as /dev/stdout, as it is.
"""

from __future__ import annotations

import errno
import json
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from trtconv.core.errors import InvalidRequestError, causes
from trtconv.core.files.earlier_reports import require_report_or_nothing
from trtconv.core.files.output_paths import is_stream, output_target, write_stream
from trtconv.core.files.private_folder import process_label
from trtconv.core.text.json_text import parse_json

SHORTER_NAME = "choose a shorter name: those of the files beside it are longer"


def require_file(path: Path, what: str) -> Path:
    """Return `path` when it is a readable file; raise InvalidRequestError naming `what` it should be."""
    try:
        str(path).encode()
    except UnicodeEncodeError as error:
        # torch and ONNX Runtime accept no other names.
        shown = str(path).encode(errors="replace").decode()
        raise InvalidRequestError(f"the name of {what} '{shown}' is not UTF-8", hint="rename it") from error
    if path.is_dir():
        raise InvalidRequestError(f"{what} '{path}' is a directory", hint="name the file inside it")
    if not path.exists():
        source, _, name = str(path).partition(".py:")
        if name and Path(f"{source}.py").is_file():
            raise InvalidRequestError(
                f"'{path}' is a module, not the {what} that is read here",
                hint=f"convert it first: trtconv convert {path}",
            )
        near = sorted(p.name for p in path.parent.glob(f"*{path.suffix}")) if path.parent.is_dir() else []
        raise InvalidRequestError(
            f"there is no {what} '{path}'",
            hint=f"files of that kind there: {', '.join(near[:5])}" if near else "check the path",
        )
    if not path.is_file():
        # /dev/zero never ends, and a FIFO may never begin.
        raise InvalidRequestError(f"{what} '{path}' is not a regular file", hint="name a file")
    if not os.access(path, os.R_OK):
        raise InvalidRequestError(f"{what} '{path}' cannot be read", hint="check its permissions")
    return path


def require_writable(path: Path) -> Path:
    """Raise InvalidRequestError early when a file could not be written there. No file or folder is left by it."""
    try:
        target = output_target(path)
        there = next(p for p in target.parents if p.exists())
        with tempfile.NamedTemporaryFile(dir=there, prefix=_prefix(target)):
            pass
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def require_writable_folder(path: Path) -> Path:
    """Raise InvalidRequestError early when nothing could be written into a folder, which need not be there yet."""
    if path.exists() and not path.is_dir():
        raise InvalidRequestError(f"the output '{path}' is not a directory", hint="name a folder")
    try:
        there = next(p for p in (path.absolute(), *path.absolute().parents) if p.exists())
        with tempfile.NamedTemporaryFile(dir=there, prefix=_prefix(path)):
            pass
    except OSError as error:
        raise unwritable(path, error) from error
    return path


def require_report_path(path: Path) -> Path:
    """As `require_writable`, for a report: `-`, a device or a FIFO is written into as it is."""
    try:
        return path if str(path) == "-" or is_stream(path) else require_writable(path)
    except OSError as error:
        raise unwritable(path, error) from error


def _prefix(path: Path) -> str:
    """The hidden prefix of a temporary file, with its owner; `remove_stale_files` knows it.

    Cut so that the whole name stays within the 255 bytes of a file system.
    """
    return f".{path.stem.encode(errors='surrogateescape')[:100].decode(errors='ignore')}.trtconv-{process_label()}-"


def out_of_space(error: BaseException | None) -> OSError | None:
    """The error of a full disk, a quota or a file size limit: `error` itself or one of its causes."""
    for cause in causes(error):
        if isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return cause
    return None


def unwritable(path: Path, error: OSError) -> InvalidRequestError:
    """The one error for a file that could not be written."""
    return InvalidRequestError(
        f"the output '{path}' cannot be written: {error.strerror or error}", hint=_remedy(error)
    )


def _remedy(error: OSError) -> str:
    if error.errno == errno.ENAMETOOLONG:
        return SHORTER_NAME
    return "free some space, or choose another place" if out_of_space(error) else "choose another place"


@contextmanager
def creating_folder(folder: Path) -> Iterator[Path]:
    """Create a folder and its parents; those that are still empty at the end, after a failure, are removed.

    Raises InvalidRequestError where there can be none.
    """
    new = [p for p in (folder, *folder.parents) if not p.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = "it is a file" if folder.is_file() else error.strerror or str(error)
        raise InvalidRequestError(f"the folder '{folder}' cannot be created: {reason}", hint=_remedy(error)) from error
    try:
        yield folder
    finally:
        with suppress(OSError):
            for folder_path in new:
                folder_path.rmdir()


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path beside the target of `path`; rename it over that when the block ends well, else remove it.

    The suffixes are kept, since some writers choose a format by them. The file is flushed to disk before the
    rename, so that a crash of the machine leaves the old or the new content. Raises InvalidRequestError when the
    place cannot be written or is full.
    """
    require_writable(path)
    try:
        target = output_target(path)
        with creating_folder(target.parent):
            handle, name = tempfile.mkstemp(dir=target.parent, prefix=_prefix(target), suffix=path.suffix)
            os.close(handle)
            temporary = Path(name)
            try:
                yield temporary
                with open(temporary, "rb") as written:
                    os.fsync(written.fileno())
                # A second link to weights keeps the mode that their owner gave them.
                if os.stat(temporary).st_nlink == 1:
                    mask = os.umask(0)
                    os.umask(mask)
                    os.chmod(temporary, 0o666 & ~mask)
                # Again, since a block may take hours: what is there by now must be a file as well.
                os.replace(temporary, output_target(target))
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
    write_bytes(path, text.encode(errors="backslashreplace"))


def write_json(path: Path, data: Any) -> None:
    """Write JSON atomically, with sorted keys, so that equal content gives equal bytes."""
    write_text(path, _json_text(data))


def write_report_text(path: Path, text: str) -> None:
    """Write a report atomically; `-` is stdout, and a device or a FIFO takes the text without being replaced.

    Raises InvalidRequestError where a file that is no report lies at the path.
    """
    if str(path) == "-":
        sys.stdout.write(text)
        return
    try:
        if not is_stream(path):
            require_report_or_nothing(path)
            write_text(path, text)
            return
        sys.stdout.flush()
        write_stream(path, text.encode(errors="backslashreplace"))
    except BrokenPipeError:
        raise
    except OSError as error:
        raise unwritable(path, error) from error


def write_report_json(path: Path, data: Any) -> None:
    """Write a report as JSON to where `write_report_text` may write."""
    write_report_text(path, _json_text(data))


def _json_text(data: Any) -> str:
    return json.dumps(data, indent=1, sort_keys=True, allow_nan=False, ensure_ascii=False) + "\n"


def read_json(path: Path, what: str = "file", hint: str = "create it again") -> dict[str, Any]:
    """Read a JSON object; raise InvalidRequestError when it is missing or broken, with the hint."""
    require_file(path, what)
    try:
        data = parse_json(path.read_text(encoding="utf-8"))
        if not isinstance(data, dict):
            raise ValueError("it is not a JSON object")
    except (ValueError, OSError, RecursionError) as error:
        raise InvalidRequestError(f"{what} '{path}' is not readable JSON: {error}", hint=hint) from error
    return data


# Of an artifact, the longest first.
_TAILS = (".trt.onnx", ".onnx", ".engine", ".plan")


def beside(path: Path, suffix: str) -> Path:
    """The companion of an artifact: `beside(out/model.trt.onnx, '.rewrites.json')` is `out/model.rewrites.json`.

    Raises InvalidRequestError for `.` and `/`, which name a folder, and for a bare `.onnx`.
    """
    name = _file_name(path)
    for tail in _TAILS:
        if name.endswith(tail):
            name = name[: -len(tail)]
            break
    return path.with_name(name + suffix)


def manifest_path(path: Path) -> Path:
    """The manifest of an artifact: `model.onnx` has `model.onnx.json`. Raises InvalidRequestError as `beside` does."""
    return path.with_name(_file_name(path) + ".json")


def _file_name(path: Path) -> str:
    if not path.name:
        raise InvalidRequestError(f"'{path}' is a directory", hint="name the file inside it")
    if path.name in _TAILS:
        raise InvalidRequestError(f"'{path}' is a suffix without a name", hint=f"write one before it: model{path.name}")
    return path.name
