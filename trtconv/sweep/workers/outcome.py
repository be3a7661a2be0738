"""How a job ended: well, with a verdict on the model (never tried again), or by a fault of the machines (tried again).

A verdict is the exit code of trtconv itself. A process that was killed, one that ran over its time, a node that went
away and a full disk say nothing about the model.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

OK = "ok"
VERDICTS: Mapping[int, str] = {
    1: "failed",
    2: "usage",
    3: "accuracy",
    4: "unsupported",
    5: "environment",
    6: "budget",
}
# Fault -> what it is called in tables.
FAULTS: Mapping[str, str] = {
    "died": "the process died",
    "hung": "over its time limit",
    "disk": "the disk is full",
    "lost": "the node or its worker was lost",
    "store": "the store failed",
}
_FULL = tuple(os.strerror(number) for number in (errno.ENOSPC, errno.EDQUOT))
_INTERRUPTED = (128 + signal.SIGINT, 128 + signal.SIGTERM, 128 + signal.SIGKILL)
MESSAGE_LENGTH = 600


@dataclass(frozen=True)
class JobResult:
    """One attempt at a job.

    `outcome` is `ok`, a verdict or a fault. `key` is that of the result, with what the job read. `files` are
    (name, sha256, size) of what it left; `facts` go into the ledger. `cached` results were in the store before.
    """

    job: str
    outcome: str
    key: str = ""
    message: str = ""
    exit_code: int | None = None
    seconds: float = 0.0
    node: str = ""
    files: tuple[tuple[str, str, int], ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)
    cached: bool = False

    @property
    def ok(self) -> bool:
        """True when the job did what it should."""
        return self.outcome == OK

    @property
    def is_fault(self) -> bool:
        """True when another attempt may end otherwise."""
        return self.outcome in FAULTS

    def as_dict(self) -> dict[str, Any]:
        """Plain data, as a worker sends it."""
        return asdict(self)


def result_from(data: Mapping[str, Any]) -> JobResult:
    """The result that `as_dict` made."""
    return JobResult(**{**data, "files": tuple(tuple(f) for f in data["files"])})


def outcome_of(code: int, output: str) -> str:
    """The outcome of a process that ended by itself; `code` is negative for a signal, `output` what it said."""
    if code == 0:
        return OK
    if code < 0 or code in _INTERRUPTED:
        return "died"
    # A tool that could not write ends with a verdict's code.
    if any(text in output for text in _FULL):
        return "disk"
    return VERDICTS.get(code, "failed")


def message_of(output: str) -> str:
    """The lines that say why, cut to a few hundred letters: from the first `error:` on, else the last ones."""
    lines = [line.rstrip() for line in output.splitlines() if line.strip()]
    start = next((i for i, line in enumerate(lines) if line.startswith(("error:", "FAILED", "internal error:"))), -3)
    text = "\n".join(lines[start:])
    return text if len(text) <= MESSAGE_LENGTH else text[:MESSAGE_LENGTH] + "..."
