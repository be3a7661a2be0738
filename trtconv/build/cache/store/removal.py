"""The only place where the cache deletes anything, and how.

An entry leaves its name by one rename to a temporary name inside the root; then its three files are unlinked by name
and the folder is removed with `rmdir`. Nothing is removed recursively and no link is followed: a folder that holds
anything but regular files of our three names stays as it is.

Temporary names, R being 16 hex digits: `.new-R` (being written), `.trash-KEY-R` (being removed), `.aside-KEY-R` (was
damaged).
"""

from __future__ import annotations

import os
import re
import secrets
import stat
import time
from contextlib import suppress
from pathlib import Path

from trtconv.build.cache.store.entry import FILES
from trtconv.core.files.private_folder import belongs_to_current_user

HOUR_S = 3600
# How long a temporary name stays after its last change, before `prune` removes it.
STALE_AFTER_S = {"new": HOUR_S, "trash": 0, "aside": 7 * 24 * HOUR_S}
TEMPORARY_FORM = re.compile(r"\.(?P<kind>new|trash-[0-9a-f]{64}|aside-[0-9a-f]{64})-[0-9a-f]{16}")
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def temporary_kind(name: str) -> str | None:
    """`new`, `trash` or `aside` for a temporary name of ours, else None."""
    match = TEMPORARY_FORM.fullmatch(name)
    return match["kind"].split("-")[0] if match else None


def new_folder(root: Path) -> Path:
    """Make a folder for an entry that is being written."""
    folder = root / f".new-{secrets.token_hex(8)}"
    os.mkdir(folder, 0o700)
    return folder


def set_aside(root: Path, key: str, inode: int | None = None) -> str:
    """Rename what stands under a key, whatever it is; returns the new name, or "" when that was not possible.

    With `inode` only that one: another process may have stored a good one meanwhile. Call it under the lock.
    """
    name = f".aside-{key}-{secrets.token_hex(8)}"
    try:
        if inode is not None and os.lstat(root / key).st_ino != inode:
            return ""
        os.rename(root / key, root / name)
    except OSError:
        return ""
    return name


def discard(root: Path, key: str) -> bool:
    """Remove an entry whose form was checked; call it under the lock. False when it is gone or cannot be removed."""
    name = f".trash-{key}-{secrets.token_hex(8)}"
    try:
        os.rename(root / key, root / name)
    except OSError:
        return False
    return remove_plain(root, name)


def remove_plain(root: Path, name: str) -> bool:
    """Remove a folder that holds nothing but regular files of an entry; False when it holds more, or is a link."""
    try:
        descriptor = os.open(root / name, _OPEN)
    except OSError:
        return False
    try:
        if not belongs_to_current_user(os.fstat(descriptor)):
            return False
        names = os.listdir(descriptor)
        if not all(n in FILES and _is_regular(descriptor, n) for n in names):
            return False
        for part in names:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=descriptor)
        os.rmdir(root / name)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def remove_stale(root: Path, name: str) -> bool:
    """Remove a temporary folder of ours after its time; False when it stays."""
    kind = temporary_kind(name)
    return kind is not None and _age(root / name) >= STALE_AFTER_S[kind] and remove_plain(root, name)


def _age(folder: Path) -> float:
    """Seconds since the last change in a folder; a time in the future counts as that far away: clocks jump."""
    try:
        paths = [folder, *(folder / name for name in os.listdir(folder))] if not folder.is_symlink() else [folder]
        newest = max(os.lstat(p).st_mtime for p in paths)
    except OSError:
        return 0.0
    return abs(time.time() - newest)


def _is_regular(descriptor: int, name: str) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISREG(os.stat(name, dir_fd=descriptor, follow_symlinks=False).st_mode)
    return True
