"""Byte counts as people write them: `4GiB`, `512MiB`, `1e9`."""

from __future__ import annotations

import re

from trtconv.core.errors import InvalidRequestError

_UNITS = {"": 1, "b": 1, "k": 10**3, "kb": 10**3, "kib": 2**10, "m": 10**6, "mb": 10**6, "mib": 2**20,
          "g": 10**9, "gb": 10**9, "gib": 2**30, "t": 10**12, "tb": 10**12, "tib": 2**40}  # fmt: skip
_SIZE = re.compile(r"\s*(?P<number>\d+(?:\.\d+)?(?:e\d+)?)\s*(?P<unit>[A-Za-z]*)\s*\Z", re.IGNORECASE)


def parse_bytes(text: str) -> int:
    """`4GiB` is 4294967296. Raises InvalidRequestError for anything else."""
    match = _SIZE.match(text)
    if not match or match["unit"].lower() not in _UNITS:
        raise InvalidRequestError(f"cannot read the size '{text}'", hint="write a number with a unit, e.g. 4GiB")
    return int(float(match["number"]) * _UNITS[match["unit"].lower()])


def format_bytes(count: float) -> str:
    """`61.2 MiB`."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024 or unit == "GiB":
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return ""
