"""A process that reads a stranger's file gives up what it does not need: writing elsewhere, the network, new rights.

Linux's Landlock (kernel 5.13; network from 6.7): https://docs.kernel.org/userspace-api/landlock.html. What is given up
is gone for good, for the thread and all threads and processes that it starts later. Reading and running programs stay
possible, since TensorRT, CUDA and the builder's child need them. Kernels without Landlock confine nothing.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION_FLAG, _PATH_BENEATH = 1, 1
_PR_SET_NO_NEW_PRIVS = 38
_WRITE_FILE, _REMOVE_DIR, _REMOVE_FILE = 1 << 1, 1 << 4, 1 << 5
_MAKE_CHAR, _MAKE_DIR, _MAKE_REG, _MAKE_SOCK = 1 << 6, 1 << 7, 1 << 8, 1 << 9
_MAKE_FIFO, _MAKE_BLOCK, _MAKE_SYM, _REFER, _TRUNCATE = 1 << 10, 1 << 11, 1 << 12, 1 << 13, 1 << 14
_BIND_TCP, _CONNECT_TCP = 1, 2
# Unix sockets in the abstract namespace, and signals, to processes outside.
_SCOPES = 3
# The rights that came with each version of Landlock.
_FILES = {
    1: _WRITE_FILE
    | _REMOVE_DIR
    | _REMOVE_FILE
    | _MAKE_CHAR
    | _MAKE_DIR
    | _MAKE_REG
    | _MAKE_SOCK
    | _MAKE_FIFO
    | _MAKE_BLOCK
    | _MAKE_SYM,
    2: _REFER,
    3: _TRUNCATE,
}
_NETWORK_VERSION, _SCOPE_VERSION = 4, 6
# In a folder that may be written; devices, sockets and FIFOs are made nowhere.
_IN_FOLDERS = _WRITE_FILE | _REMOVE_DIR | _REMOVE_FILE | _MAKE_DIR | _MAKE_REG | _MAKE_SYM | _REFER | _TRUNCATE
_ON_DEVICES = _WRITE_FILE | _TRUNCATE | _MAKE_REG | _REMOVE_FILE
_NEW_MOUNT_NAMESPACE = 0x20000
_READ_ONLY, _REMOUNT, _BIND, _RECURSIVE, _PRIVATE = 1, 1 << 5, 1 << 12, 1 << 14, 1 << 18
_PROC = Path("/proc")


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scopes", ctypes.c_uint64))


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def landlock_version() -> int:
    """The version of Landlock that the kernel has; 0 for none."""
    if sys.platform != "linux":
        return 0
    return max(0, int(_libc().syscall(_CREATE, None, 0, _VERSION_FLAG)))


def confine(folders: Iterable[Path]) -> bool:
    """From now on this thread writes only below `folders` (each with its parents, until one exists) and devices.

    In /proc it writes only into the folders of processes, where Landlock keeps it out of the memory of those that were
    there before. It opens no TCP connection, and signals none of them. Returns False, with no right given up, where the
    kernel cannot do it.
    """
    version = landlock_version()
    if not version:
        return False
    files = sum(rights for since, rights in _FILES.items() if since <= version)
    network = _BIND_TCP | _CONNECT_TCP if version >= _NETWORK_VERSION else 0
    ruleset = _Ruleset(files, network, _SCOPES if version >= _SCOPE_VERSION else 0)
    size = 24 if version >= _SCOPE_VERSION else 16 if version >= _NETWORK_VERSION else 8
    libc = _libc()
    handle = libc.syscall(_CREATE, ctypes.byref(ruleset), size, 0)
    if handle < 0:
        return False
    try:
        for folder in {_existing(f) for f in folders}:
            _allow(handle, folder, _IN_FOLDERS & files)
        _allow(handle, Path("/dev"), _ON_DEVICES & files)
        # CUDA names its threads in /proc/self/task/*/comm, which it truncates, and does not start where it must not.
        # The folders of processes that will be started later have no name yet, so the rule is for all of them.
        _allow(handle, _PROC if _protect_kernel_files() else _PROC / "self", (_WRITE_FILE | _TRUNCATE) & files)
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
            return False
        return not libc.syscall(_RESTRICT, handle, 0)
    finally:
        os.close(handle)


def _protect_kernel_files() -> bool:
    """Make what lies in /proc beside the processes read-only for this process and those that it starts.

    Returns False where root could still write there: `core_pattern` alone runs programs. Other users never can.
    """
    if os.geteuid():
        return True
    libc = _libc()
    if libc.unshare(_NEW_MOUNT_NAMESPACE) == 0 and _mount(None, Path("/"), _RECURSIVE | _PRIVATE):
        kernel_files = [p for p in _PROC.iterdir() if not p.name.isdigit() and not p.is_symlink()]
        if all(_mount(p, p, _BIND) and _mount(None, p, _REMOUNT | _BIND | _READ_ONLY) for p in kernel_files):
            return True
    # A container that may not mount has the dangerous ones mounted read-only already.
    return bool(os.statvfs(_PROC / "sys").f_flag & os.ST_RDONLY)


def _mount(source: Path | None, target: Path, flags: int) -> bool:
    path = None if source is None else os.fsencode(source)
    return not _libc().mount(path, os.fsencode(target), None, ctypes.c_ulong(flags), None)


def _allow(ruleset: int, folder: Path, rights: int) -> None:
    with suppress(OSError):
        descriptor = os.open(folder, os.O_PATH | os.O_CLOEXEC)
        try:
            rule = _Beneath(rights, descriptor)
            _libc().syscall(_ADD, ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
        finally:
            os.close(descriptor)


def _existing(path: Path) -> Path:
    """The folder itself, or the nearest one above it that is there."""
    real = Path(os.path.realpath(path))
    return next(p for p in (real, *real.parents) if p.is_dir())


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
