"""The rewrite rule without which a rewritten graph computes what its original computes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from trtconv.core.errors import TrtconvError
from trtconv.core.files.private_folder import private_temporary_folder
from trtconv.core.precision import HALF_NAMES
from trtconv.core.progress import Progress, SilentProgress
from trtconv.core.requests import CheckRequest, RewriteRequest

if TYPE_CHECKING:
    from trtconv.rewrite import RewriteResult

# Each rule costs a rewrite and a check. Beyond this many seconds the error is told without a rule.
SECONDS = 60.0
# Rules that move no rounding by themselves; they are tried last.
EXACT = ("fold-constants", "drop-identity")


def rule_at_fault(request: RewriteRequest, rewritten: RewriteResult, check: CheckRequest, progress: Progress) -> str:
    """The name of the one rule without which the graph passes `check`; empty when it is not a single one.

    A rule may be right within rounding, and a decision behind it fall to the other side of a tie: the first tensor
    that differs is then no node of the rule. The rules that were applied are left out one at a time, into a folder of
    this process, for at most `SECONDS`. Half precision and quantisation have causes of their own, so that there no
    rule is looked for.
    """
    if request.quantised or request.precision in HALF_NAMES:
        return ""
    started = time.monotonic()
    with private_temporary_folder("rules") as folder:
        for rule in _by_suspicion(rewritten):
            if time.monotonic() - started > SECONDS:
                return ""
            progress.note(f"looking for the rule that makes the difference: without {rule}")
            if _equal_without(rule, request, check, folder):
                return rule
    return ""


def _by_suspicion(rewritten: RewriteResult) -> Iterator[str]:
    """The rules that were applied, each once, those that move no rounding last."""
    names = dict.fromkeys(entry.rule for entry in rewritten.entries)
    yield from sorted(names, key=lambda name: name in EXACT)


def _equal_without(rule: str, request: RewriteRequest, check: CheckRequest, folder: str) -> bool:
    from trtconv.check import check_model
    from trtconv.rewrite import rewrite_model

    output = Path(folder) / f"without_{rule}.onnx"
    without = replace(request, output=output, skip=(*request.skip, rule), proof=False)
    try:
        rewrite_model(without, SilentProgress())
        return check_model(replace(check, subject=output, power=0), SilentProgress()).passed
    except TrtconvError:
        # The target has need of the rule, or the graph cannot be run without it.
        return False
