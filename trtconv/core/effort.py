"""How long a search goes on that may end early, and gives the same on a busy machine as on an idle one."""

from __future__ import annotations

import time
from collections.abc import Callable


class Effort:
    """A budget of CPU seconds, of which at least so many steps are granted whatever they take.

    By wall time a busy machine would try less than an idle one, and write other files. CPU time alone is not enough: a
    machine that stalls charges the stall to whoever runs. The steps bound what a small module gets from below, and a
    stall that takes `PATIENCE` times the budget ends the search all the same.
    """

    PATIENCE = 10.0

    def __init__(self, seconds: float, least: int, clock: Callable[[], float] = time.thread_time) -> None:
        self._clock, self._seconds, self._least = clock, seconds, least
        self._started, self.steps = clock(), 0

    def step(self) -> bool:
        """Count a step; False when there is nothing left for it."""
        self.steps += 1
        return not self.spent

    @property
    def spent(self) -> bool:
        """True when the budget is used up."""
        seconds = self._clock() - self._started
        return seconds > self._seconds and (self.steps > self._least or seconds > self.PATIENCE * self._seconds)
