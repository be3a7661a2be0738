"""How many processors this process may use, how native threads wait, and how often garbage is looked for.

torch starts a thread for each processor that it sees. A container that may use two of 96 gives it 96, which take turns;
and OpenMP's threads burn their turn while they wait for one another, unless they are told to sleep: on two cores beside
one busy process, a ViT-Ti at the sample points took 20 times as long (41 s for 2 s).

Python looks for cycles after every 700 new objects, and an export makes millions that live on: 3 % of a conversion of a
ResNet-18 went there (11.4 to 11.7 s of the processor for 11.7 to 11.9, three runs in turns).
"""

from __future__ import annotations

import gc
import math
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

# Variables by which a user decides how OpenMP's threads wait (libgomp, the standard, LLVM's and Intel's).
_WAITING = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME")
_GROUPS = Path("/sys/fs/cgroup")
# New objects after which the youngest are looked through; Python's own is 700, and 2,000 from 3.13 on.
_NEW_OBJECTS = 20_000


def thread_variables(environment: Mapping[str, str], groups: Path = _GROUPS) -> dict[str, str]:
    """What to set before torch is imported, where the user has not decided: threads that sleep while they wait, and no
    more of them than the processors that a control group grants.
    """
    variables = {} if any(name in environment for name in _WAITING) else {"OMP_WAIT_POLICY": "PASSIVE"}
    granted = granted_processors(groups)
    if granted and "OMP_NUM_THREADS" not in environment:
        variables["OMP_NUM_THREADS"] = str(granted)
    return variables


def granted_processors(groups: Path = _GROUPS) -> int:
    """How many processors a control group grants, when that is fewer than there are; else 0.

    Linux, "Control Group v2", cpu.max; and cpu.cfs_quota_us of version 1.
    """
    shares = [s for s in (_version_2(groups), _version_1(groups)) if s is not None]
    count = max(1, math.ceil(min(shares))) if shares else 0
    return count if count < _present() else 0


def _version_2(groups: Path) -> float | None:
    try:
        quota, period = (groups / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _version_1(groups: Path) -> float | None:
    try:
        quota = int((groups / "cpu" / "cpu.cfs_quota_us").read_text())
        period = int((groups / "cpu" / "cpu.cfs_period_us").read_text())
        return quota / period if quota > 0 else None
    except (OSError, ValueError, ZeroDivisionError):
        return None


def _present() -> int:
    """The processors on which this process may run."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


@contextmanager
def seldom_collected() -> Iterator[None]:
    """In the block Python looks for cycles after every 20,000 new objects, or more where the process says so."""
    youngest, *older = before = gc.get_threshold()
    if 0 < youngest < _NEW_OBJECTS:
        gc.set_threshold(_NEW_OBJECTS, *older)
    try:
        yield
    finally:
        gc.set_threshold(*before)
