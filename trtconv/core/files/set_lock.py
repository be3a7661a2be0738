"""One writer at a time for the files of one conversion, and no leftovers of writers that were killed.

The lock is the kernel's (flock) on a hidden file beside the set, so that it ends with its process however that ends; a
file that a killed process left behind is taken over by the next one. A file system without locks has none: a set that
two processes mixed is then recognised by its digests (see `artifact_set`).
"""

from __future__ import annotations

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path

from trtconv.core.artifacts import beside, creating_folder, unwritable
from trtconv.core.errors import OutputBusyError, TrtconvError
from trtconv.core.files.output_paths import output_target
from trtconv.core.files.private_folder import remove_stale_files, remove_stale_folders

SUFFIX = ".trtconv-lock"
_NO_LOCKS = (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL)
_STEM_BYTES = 150
# The locks that this call stack holds, so that `convert` can call the rooms, which lock as well. Another thread has a
# context of its own and is refused as another process is.
_held: ContextVar[frozenset[Path]] = ContextVar("held_set_locks", default=frozenset())


@contextmanager
def locked_set(output: Path) -> Iterator[None]:
    """Hold the lock of the set to which `output` belongs: `out/model.engine` and `out/model.onnx` have the same one.

    Temporary files and folders that killed processes left beside it are removed. Raises OutputBusyError at once when
    another process holds the lock, InvalidRequestError when nothing can be written there.
    """
    path = _lock_path(output)
    if path in _held.get() or sys.platform == "win32":
        yield
        return
    with creating_folder(path.parent):
        try:
            handle = _acquire(path, output)
        except OSError as error:
            raise unwritable(output, error) from error
        token = _held.set(_held.get() | {path})
        try:
            remove_stale_files(path.parent)
            remove_stale_folders(path.parent, "export")
            yield
        finally:
            _held.reset(token)
            if handle is not None:
                # While it is held: nobody else can have taken this file for the lock.
                with suppress(OSError):
                    os.unlink(path)
                os.close(handle)


def remove_leftovers(output: Path) -> None:
    """Remove what killed processes left beside a set that is not written now; where others do, or nobody may, it stays.

    For a command that has nothing to write.
    """
    with suppress(TrtconvError), locked_set(output):
        pass


def _lock_path(output: Path) -> Path:
    try:
        target = output_target(output)
    except OSError as error:
        raise unwritable(output, error) from error
    stem = beside(target, "").name.encode(errors="surrogateescape")[:_STEM_BYTES].decode(errors="ignore")
    return target.with_name(f".{stem}{SUFFIX}")


def _acquire(path: Path, output: Path) -> int | None:
    """The descriptor that holds the lock; None where the file system has no locks. Raises OutputBusyError, OSError."""
    import fcntl

    while True:
        flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            handle = os.open(path, flags, 0o600)
        except FileNotFoundError:
            # Whoever made the folder found nothing to write and removed it again.
            path.parent.mkdir(parents=True, exist_ok=True)
            continue
        try:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise OSError(errno.EEXIST, "the name of its lock is taken by something else than a file", str(path))
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _is_current(handle, path):
                os.ftruncate(handle, 0)
                os.write(handle, f"{os.getpid()}\n".encode())
                return handle
            os.close(handle)  # its holder removed it just before we had it
        except BlockingIOError as error:
            holder = os.pread(handle, 32, 0).decode(errors="replace").strip()
            os.close(handle)
            raise _busy(output, holder) from error
        except OSError as error:
            os.close(handle)
            if error.errno in _NO_LOCKS:
                return None
            raise


def _is_current(handle: int, path: Path) -> bool:
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(handle), there)


def _busy(output: Path, holder: str) -> OutputBusyError:
    name = f" (process {holder})" if re.fullmatch(r"\d{1,10}", holder) else ""
    stem = beside(output, "")
    return OutputBusyError(f"another trtconv{name} writes '{stem}.*'", hint="wait for it, or choose another folder")
