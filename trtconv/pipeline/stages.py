"""The stages of a conversion, as they are shown and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from trtconv.core.errors import UnsupportedError
from trtconv.core.progress import Progress

if TYPE_CHECKING:
    from trtconv.rewrite.engine.result import RewriteResult

T = TypeVar("T")


@dataclass(frozen=True)
class Stages:
    """Runs steps as stages. `seconds` has the wall time of each by name."""

    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    def timed(self, name: str, step: Callable[[], T]) -> T:
        """Run a step as the stage `name`."""
        self.progress.stage(name)
        start = time.monotonic()
        result = step()
        self.seconds[name] = time.monotonic() - start
        return result


@contextmanager
def naming_what_was_left(rewritten: RewriteResult) -> Iterator[None]:
    """A build that refuses a node says why the rewrite before it left the node; to rewrite again is no way out."""
    try:
        yield
    except UnsupportedError as error:
        if "trtconv rewrite --target" in (error.hint or ""):
            error.details = (*error.details, *(f"the rewrite left it: {note}" for note in rewritten.notes))
            error.hint = (
                "no rule takes it as it is: compute it before or behind the engine, or write a rule "
                "(trtconv help write-a-rule)"
            )
        raise
