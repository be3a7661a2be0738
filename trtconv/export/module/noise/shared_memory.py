"""Memory that a fork shares with its parent: what the parent's calls leave there would be there in the fork too."""

from __future__ import annotations

import ctypes
import mmap
import os
import re
from pathlib import Path

_MAPPING = re.compile(r"(?P<begin>[0-9a-f]+)-(?P<end>[0-9a-f]+) rw-s \S+ \S+ \S+ *(?P<path>.*)")
# What else lies under /dev is a driver's, and what has no path a queue of the kernel's.
_MEMORY = ("/dev/shm/", "/dev/zero")
MOST_BYTES = 1 << 28


def make_private() -> None:
    """Put a private copy in the place of everything that this process shares for writing.

    That is anonymous shared memory, files that are mapped, tensors in shared memory. Linux only; what cannot be copied
    stays shared.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
    memory = os.open("/proc/self/mem", os.O_RDONLY)
    try:
        for begin, size in _shared_mappings():
            try:
                content = os.pread(memory, size, begin)
            except OSError:
                continue  # behind the end of its file
            private = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x10  # MAP_FIXED
            if libc.mmap(begin, size, mmap.PROT_READ | mmap.PROT_WRITE, private, -1, 0) == begin:
                ctypes.memmove(begin, content, len(content))
    finally:
        os.close(memory)


def _shared_mappings() -> list[tuple[int, int]]:
    """Address and bytes of each, up to `MOST_BYTES` in all."""
    mappings, total = [], 0
    for line in Path("/proc/self/maps").read_text().splitlines():
        match = _MAPPING.fullmatch(line)
        if match is None:
            continue
        path = match["path"]
        if not path.startswith("/") or (path.startswith("/dev/") and not path.startswith(_MEMORY)):
            continue
        begin, size = int(match["begin"], 16), int(match["end"], 16) - int(match["begin"], 16)
        if total + size <= MOST_BYTES:
            mappings.append((begin, size))
            total += size
    return mappings
