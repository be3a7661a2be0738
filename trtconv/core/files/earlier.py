"""Files of an earlier run, which stay where they are when a later run fails: the error says that they do."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from trtconv.core.errors import TrtconvError

_STALE = "left from an earlier run"


@contextmanager
def telling_of_earlier(outputs: Sequence[Path]) -> Iterator[None]:
    """Add a line to a TrtconvError that leaves the block about those of the outputs that it did not write."""
    before = {path: written_ns(path) for path in outputs}
    try:
        yield
    except TrtconvError as error:
        # One that the message names is an input, which is no output of an earlier run.
        stale = [
            p.name for p, ns in before.items() if ns and written_ns(p) == ns and f"'{p}'" not in error.message
        ]
        stale = [name for name in stale if not any(f" {name}" in line and _STALE in line for line in error.details)]
        if stale:
            error.details = (*error.details, f"{_STALE}: {', '.join(stale)}")
        raise


def written_ns(path: Path) -> int:
    """When a file was last written, in ns since the epoch; 0 where there is none."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0
