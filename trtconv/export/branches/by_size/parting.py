"""Where two runs of the module part, to blame a line for it: by its sizes, or by the values of the inputs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trtconv.export.branches.explain import Fork, find_fork
from trtconv.export.branches.value_exits import value_exits

if TYPE_CHECKING:
    import numpy as np

    from trtconv.export.module.runner import ModuleRunner
    from trtconv.proof.original import MakeInputs
    from trtconv.proof.points import SamplePoint
    from trtconv.proof.reference import ReferenceSample

    Array = np.ndarray[Any, np.dtype[Any]]

# Samples that are run once more, to see where one parts from the first; and draws of values of the same size.
MOST_LOOKED_AT, SEEDS_OF_VALUES = 6, 4
OTHER_VALUES = "other values of the same size"


@dataclass(frozen=True)
class Parting:
    """Two runs that part at a line: what they were, and whether the size does it. The first is that of a sample."""

    fork: Fork
    here: str
    there: str
    by_size: bool
    runner: ModuleRunner
    samples: Sequence[ReferenceSample]

    def describe(self, base: Path) -> str:
        """A sentence for an error."""
        return self.fork.describe(self.here, self.there, base)

    def has_both_ways(self, failing: SamplePoint | None) -> bool:
        """Whether a file that fails there is wrong at the first sample, or right at one that goes the other way."""
        first, *others = self.samples
        if failing == first.point:
            return True
        right = itertools.takewhile(lambda sample: sample.point != failing, others)
        forks = (find_fork(self.runner, first.inputs, s.inputs) for s in itertools.islice(right, MOST_LOOKED_AT))
        return any(fork is not None and fork.line == self.fork.line for fork in forks)


def find_parting(
    runner: ModuleRunner, samples: Sequence[ReferenceSample], make: MakeInputs, failing: Sequence[SamplePoint]
) -> Parting | None:
    """Where the run at the first sample and another run part; None where none does.

    Those of other values at the same size are looked at first, then the points at which files failed.
    """
    first, *others = samples
    fork = _by_values(runner, first.point, first.inputs, make)
    if fork is not None:
        return Parting(fork, str(first.point), OTHER_VALUES, False, runner, samples)
    failed = list(dict.fromkeys(failing))
    others.sort(key=lambda s: s.point not in failed)
    looked_at = [(s.point, s.inputs) for s in others[:MOST_LOOKED_AT]]
    looked_at = [(at, make(at)) for at in failed if all(at != p for p, _ in looked_at)] + looked_at
    for point, inputs in looked_at:
        fork = find_fork(runner, first.inputs, inputs)
        if fork is None:
            continue
        # A line at which a number leaves torch decides by a value, although another size met it here.
        leaving = value_exits(runner, [first.inputs, inputs]).get(fork.line)
        # An error that the module catches may come from the size alone, as that of a view.
        by_value = leaving is not None and (leaving.numbers or not leaving.shown)
        by_size = point.values == "random" or _parts_by_size(runner, fork, first, point, make)
        # The number may have left in a line before, and sizes that take fewer values are further apart.
        other = _by_values(runner, point, inputs, make) if by_size and not by_value else None
        if other is not None and other.line == fork.line:
            return Parting(other, str(point), OTHER_VALUES, False, runner, samples)
        return Parting(fork, str(first.point), str(point), by_size and not by_value, runner, samples)
    return None


def _by_values(
    runner: ModuleRunner, point: SamplePoint, inputs: Mapping[str, Array], make: MakeInputs
) -> Fork | None:
    others = (replace(point, values="random", seed=point.seed + draw) for draw in range(1, SEEDS_OF_VALUES + 1))
    forks = (find_fork(runner, inputs, make(other)) for other in others)
    return next((fork for fork in forks if fork is not None), None)


def _parts_by_size(
    runner: ModuleRunner, fork: Fork, first: ReferenceSample, point: SamplePoint, make: MakeInputs
) -> bool:
    """True where the run parts at that line at the sizes of the point with other values, too."""
    if point.dims == first.point.dims:
        return False
    again = find_fork(runner, first.inputs, make(replace(point, values="random")))
    return again is not None and again.line == fork.line
