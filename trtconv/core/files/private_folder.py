"""Folders that only this user can change, and temporary ones that are cleaned up after a process that was killed.

What lies in such a folder is deserialised (engines, pickled results), so whoever can write there can run code as this
user. `create_private_folder` makes one with mode 0700 in the call that makes it; `require_private_folder` refuses one
that belongs to another user or that others can write to. A temporary folder has the process that owns it in its name:
`trtconv-PURPOSE-PID-START-NAMESPACE-RANDOM`, so that a later run can tell whether that process still lives. Temporary
files beside an output are named `.STEM.trtconv-PID-START-NAMESPACE-RANDOM.SUFFIX` for the same reason.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path

from trtconv.core.errors import UnsafeFolderError

WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH
_OWNER = r"(?P<pid>\d{1,10})-(?P<start>\d{1,20})-(?P<namespace>\d{1,20})-[a-z0-9_]{8}"
_FOLDER = re.compile(rf"\.?trtconv-(?P<purpose>[a-z0-9]+)-{_OWNER}", re.ASCII)
_FILE = re.compile(rf"\..*\.trtconv-{_OWNER}(\..*)?", re.ASCII | re.DOTALL)


def current_user() -> int:
    """The effective user id; -1 on systems without one."""
    return os.geteuid() if hasattr(os, "geteuid") else -1


def belongs_to_current_user(status: os.stat_result) -> bool:
    """True when the file is this user's, and always on systems without user ids."""
    return current_user() in (-1, status.st_uid)


def create_private_folder(path: Path) -> None:
    """Create `path` and its missing parents, each with mode 0700 from the start; existing ones stay as they are."""
    for folder in reversed([path, *path.parents]):
        if not folder.exists():
            try:
                os.mkdir(folder, 0o700)
            except FileExistsError:
                if not folder.is_dir():
                    raise


def require_private_folder(path: Path, what: str) -> None:
    """Raise UnsafeFolderError unless `path` belongs to this user and nobody else can write to it.

    Raises NotADirectoryError when it is something else than a folder; links are not followed.
    """
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        raise NotADirectoryError(20, "Not a directory", str(path))
    quoted, user = shlex.quote(str(path)), _user_name(current_user())
    if not belongs_to_current_user(status):
        raise UnsafeFolderError(
            f"{what} '{path}' belongs to {_user_name(status.st_uid)}, not to {user}",
            hint=f"if its content can be trusted: chown -R {user} {quoted}; else use another folder",
        )
    if current_user() != -1 and status.st_mode & WRITABLE_BY_OTHERS:
        raise UnsafeFolderError(
            f"other users can write to {what} '{path}' (mode {stat.S_IMODE(status.st_mode):04o})",
            hint=f"if its content can be trusted: chmod 700 {quoted}; else use another folder",
        )


def private_temporary_folder(purpose: str, beside: Path | None = None) -> tempfile.TemporaryDirectory[str]:
    """A temporary folder of mode 0700, after those of the same purpose were removed whose process was killed.

    `purpose` is one word of lower-case letters and digits. The folder lies in that for temporary files, or hidden in
    the folder `beside`. Raises UnsafeFolderError when the folder for temporary files lets other users replace what is
    in it (writable by all, without the sticky bit).
    """
    parent = beside or Path(tempfile.gettempdir())
    if beside is None:
        _require_sticky(parent)
    remove_stale_folders(parent, purpose)
    hidden = "" if beside is None else "."
    return tempfile.TemporaryDirectory(prefix=f"{hidden}trtconv-{purpose}-{process_label()}-", dir=parent)


def process_label() -> str:
    """`PID-START-NAMESPACE` of this process, for names that tell a later run whether their owner still lives."""
    return "-".join(map(str, _identity()))


def remove_stale_folders(parent: Path, purpose: str = "") -> tuple[str, ...]:
    """Remove this user's temporary folders of a purpose (all if empty) whose process has ended; returns their names.

    Only exact names count, only real folders, and only processes of this PID namespace: the others cannot be seen.
    """
    stale = [name for name, match in _abandoned(parent, _FOLDER, stat.S_ISDIR) if purpose in ("", match["purpose"])]
    for name in stale:
        shutil.rmtree(parent / name, ignore_errors=True)
    return tuple(stale)


def remove_stale_files(parent: Path) -> tuple[str, ...]:
    """The same for the temporary files that outputs in `parent` were written under."""
    stale = [name for name, _ in _abandoned(parent, _FILE, stat.S_ISREG)]
    for name in stale:
        (parent / name).unlink(missing_ok=True)
    return tuple(stale)


def _abandoned(parent: Path, form: re.Pattern[str], of_kind: Callable[[int], bool]) -> list[tuple[str, re.Match[str]]]:
    """The names of that form and kind that belong to this user and to a process of this namespace that has ended."""
    names = []
    for name in os.listdir(parent):
        match = form.fullmatch(name)
        if match is None or int(match["namespace"]) != _identity()[2]:
            continue
        try:
            status = os.lstat(parent / name)
        except OSError:
            continue
        if not of_kind(status.st_mode) or not belongs_to_current_user(status):
            continue
        if not is_running(int(match["pid"]), int(match["start"])):
            names.append((name, match))
    return names


def start_time(pid: int) -> int | None:
    """When a process started, in clock ticks since boot (field 22 of /proc/PID/stat); 0 where there is no /proc.

    None when there is no such process, or only its zombie.
    """
    try:
        text = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        if Path("/proc/self/stat").exists():
            return None
        return 0 if _answers(pid) else None
    # The name of the program is in parentheses and may hold any character.
    fields = text.rpartition(")")[2].split()
    return None if fields[0] in "ZX" else int(fields[19])


def is_running(pid: int, start: int) -> bool:
    """True while the process that had this id and start time lives; its id may have gone to another one since."""
    return start_time(pid) == start


def _identity() -> tuple[int, int, int]:
    """Process id, start time and PID namespace of this process."""
    try:
        namespace = os.stat("/proc/self/ns/pid").st_ino
    except OSError:
        namespace = 0
    return os.getpid(), start_time(os.getpid()) or 0, namespace


def _answers(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True
    return True


def _require_sticky(parent: Path) -> None:
    mode = os.stat(parent).st_mode
    if current_user() != -1 and mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
        raise UnsafeFolderError(
            f"other users can replace files in the folder for temporary files '{parent}' "
            f"(mode {stat.S_IMODE(mode):04o})",
            hint=f"chmod +t {shlex.quote(str(parent))}, or name another folder with TMPDIR",
        )


def _user_name(number: int) -> str:
    try:
        import pwd

        return pwd.getpwuid(number).pw_name
    except (ImportError, KeyError):
        return str(number)
