"""All targets. Those that take seconds for an input are fuzzed by `make fuzz` alone."""

from __future__ import annotations

from tests.fuzz import command_target, file_targets, model_targets, rewrite_target, text_targets
from tests.fuzz.target import Target

SHORT = (*text_targets.TARGETS, *file_targets.TARGETS, model_targets.READ, rewrite_target.TARGET)
TARGETS = (*SHORT, command_target.TARGET, model_targets.PROGRAM, *model_targets.LONG)


def by_name(name: str) -> Target:
    """Raises StopIteration for an unknown name."""
    return next(t for t in TARGETS if t.name == name)
