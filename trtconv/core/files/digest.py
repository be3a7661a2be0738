"""The SHA-256 of files: that of large ones is computed once, as long as nothing has touched them since."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

# Where a manifest or a ledger holds the SHA-256 of what it says.
SEAL = "content_sha256"
# A kernel stamps changes by its tick, at most 10 ms long. One that follows a digest by more than that has another
# stamp, so that the digest holds for as long as the stamp does.
_TICK_NS = 50_000_000
# Stamps in whole milliseconds, seconds or pairs of seconds come from file systems that have no finer ones (FAT, HFS+).
_FINE_NS, _COARSE_TICK_NS = 1_000_000, 2_500_000_000
# Smaller files are read again in less time than is worth a thought.
_WORTH_BYTES = 1 << 20
_MOST = 256

_Stamp = tuple[int, int, int, int, int]
_digests: dict[_Stamp, str] = {}


def sha256_file(path: Path) -> str:
    """The SHA-256 of a file's bytes, in hex.

    What a conversion checks again and again (weights, engines) is read once: the digest is taken again when the file
    is another one or was written to since, which its inode, size and times of change say. They are asked of the opened
    file, as network file systems answer for a path from memory. Git's index goes by the same stamps (see "racy git").
    """
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        stamp = _stamp(os.fstat(stream.fileno()))
        if stamp in _digests:
            return _digests[stamp]
        while chunk := stream.read(1 << 20):
            digest.update(chunk)
        after = os.fstat(stream.fileno())
    if after.st_size >= _WORTH_BYTES and _stamp(after) == stamp and _is_settled(after):
        if len(_digests) >= _MOST:
            del _digests[next(iter(_digests))]
        _digests[stamp] = digest.hexdigest()
    return digest.hexdigest()


def _stamp(status: os.stat_result) -> _Stamp:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def _is_settled(status: os.stat_result) -> bool:
    """True when a change from now on has another stamp."""
    tick = _TICK_NS if status.st_ctime_ns % _FINE_NS else _COARSE_TICK_NS
    return time.time_ns() - status.st_ctime_ns > tick
