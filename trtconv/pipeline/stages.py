"""The stages of a conversion, as they are shown and timed."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from trtconv.core.progress import Progress

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
