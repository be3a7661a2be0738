"""How many threads a module runs with in FP64: one, unless all of them have shown to be faster.

torch convolves FP64 group by group and shares each group among its threads, which sleep in between. Waking one takes as
long as many a group: an EfficientNet-B0 on two cores took 0.09 s with one thread and 1.5 s with two, beside a busy
process 2.5 s. Only FP64 runs are timed, as another number of threads adds up in another order: in FP64 that is far
below what is measured with it, in FP32 it would be another output.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]

# Runs that take less with one thread are not worth a trial with more.
WORTHWHILE = 0.5
# The first run of each kind allocates and starts threads. One that takes so many times as long needs no second.
TRIALS = 2
HOPELESS = 2.0


@contextmanager
def one_thread() -> Iterator[None]:
    """torch computes in one thread during the block."""
    import torch

    count = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(count)


@dataclass
class FasterThreads:
    """Seconds per byte of the inputs, the best of the runs with one thread and with all."""

    clock: Callable[[], float] = time.perf_counter
    alone: list[float] = field(default_factory=list)
    together: list[float] = field(default_factory=list)
    seconds: float = 0.0

    @contextmanager
    def chosen(self, inputs: Mapping[str, Array]) -> Iterator[None]:
        """Run the block with the threads that are the faster so far, and time it unless it raises."""
        import torch

        alone = not self._together()
        if torch.get_num_threads() == 1:
            yield
            return
        started = self.clock()
        with one_thread() if alone else nullcontext():
            yield
        seconds = self.clock() - started
        (self.alone if alone else self.together).append(seconds / max(1, sum(v.nbytes for v in inputs.values())))
        self.seconds = seconds if alone else self.seconds

    def _together(self) -> bool:
        """True when the next run is one with all threads."""
        if len(self.alone) < TRIALS or self.seconds < WORTHWHILE:
            return False
        if self.together and min(self.together) > HOPELESS * min(self.alone):
            return False
        return len(self.together) < TRIALS or min(self.together) < min(self.alone)
