"""The folder of the cache: private, and marked, so that no other folder is ever taken for one.

The marker is a file of our own with a version, beside a CACHEDIR.TAG (https://bford.info/cachedir/) that tells backup
programs to skip the folder. A new or empty folder is marked; one that holds anything else is refused.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from trtconv.core.errors import InvalidRequestError
from trtconv.core.files.private_folder import belongs_to_current_user, create_private_folder, require_private_folder
from trtconv.core.text.json_text import parse_json

VARIABLE = "TRTCONV_CACHE"
VERSION = 2
MARKER, TAG, LOCK = ".trtconv-cache", "CACHEDIR.TAG", ".lock"
_PART = MARKER + ".part"
OWN_FILES = frozenset({MARKER, TAG, LOCK, _PART})
_LOCK_TIMEOUT_S = 120
_TAG_TEXT = (
    "Signature: 8a477f597d28d172789f06886806bc55\n"
    "# This folder is a cache of trtconv; see https://bford.info/cachedir/\n"
)


def open_root(root: Path, *, create: bool) -> Path | None:
    """The folder of a cache with its links resolved, made and marked if need be; None where there is none yet.

    Raises UnsafeFolderError when other users own or can write to it, InvalidRequestError when it is some other folder
    or a cache of another version, OSError when it cannot be read or written.
    """
    folder = Path(os.path.realpath(root))
    if not folder.exists():
        if not create:
            return None
        create_private_folder(folder)
    require_private_folder(folder, "the engine cache")
    if _is_marked(folder):
        return folder
    others = sorted(set(os.listdir(folder)) - OWN_FILES)
    # Another process may have marked and filled it in between.
    if others and not _is_marked(folder):
        raise InvalidRequestError(
            f"'{root}' is not an engine cache of trtconv and not empty ({len(others)} other files or folders)",
            hint=f"nothing was changed; set {VARIABLE} to a new or an empty folder, for instance '{root / 'trtconv'}'",
        )
    if not create:
        return None
    _mark(folder)
    return folder


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the cache's lock. Raises InvalidRequestError when another process holds it for two minutes."""
    from filelock import FileLock, Timeout

    try:
        with FileLock(str(folder / LOCK), timeout=_LOCK_TIMEOUT_S, mode=0o600):
            yield
    except Timeout as error:
        raise InvalidRequestError(
            f"the engine cache '{folder}' has been locked by another process for {_LOCK_TIMEOUT_S} s",
            hint=f"set {VARIABLE} to another folder",
        ) from error


def _mark(folder: Path) -> None:
    """Called for an empty folder that is this user's own; the marker comes last, by a rename."""
    os.chmod(folder, 0o700)
    with locked(folder):
        if _is_marked(folder):
            return
        _write(folder / TAG, _TAG_TEXT)
        _write(folder / _PART, json.dumps({"kind": "trtconv engine cache", "version": VERSION}) + "\n")
        os.replace(folder / _PART, folder / MARKER)


def _write(path: Path, text: str) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as stream:
        stream.write(text)


def _is_marked(folder: Path) -> bool:
    """Raises InvalidRequestError for a marker that is not of this version."""
    try:
        descriptor = os.open(folder / MARKER, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _wrong_marker(folder) from error
    with os.fdopen(descriptor, "rb") as stream:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or not belongs_to_current_user(status):
            raise _wrong_marker(folder)
        text = stream.read(4096)
    try:
        if parse_json(text)["version"] == VERSION:
            return True
    except (ValueError, TypeError, KeyError, RecursionError):
        pass
    raise _wrong_marker(folder)


def _wrong_marker(folder: Path) -> InvalidRequestError:
    return InvalidRequestError(
        f"'{folder / MARKER}' is not the marker of an engine cache of version {VERSION}",
        hint=f"nothing was changed; set {VARIABLE} to a new or an empty folder",
    )
