"""The three parts of the data: one calibrates, one is searched on, one judges. A sample is in one of them alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from trtconv.core.data.samples import Sample
from trtconv.core.errors import InvalidRequestError

# Of each hundred different samples; what judges is the largest, since its size decides how small a drop can be seen.
SHARES = (("calibration", 25), ("search", 30), ("judging", 45))
FEWEST = 8
FEWEST_IN_ALL = 32


@dataclass(frozen=True)
class Parts:
    """The parts, without duplicates of an input. `duplicates` counts what was left out."""

    calibration: tuple[Sample, ...]
    search: tuple[Sample, ...]
    judging: tuple[Sample, ...]
    duplicates: int = 0

    def sizes(self) -> dict[str, int]:
        """The number of samples by part."""
        return {name: len(getattr(self, name)) for name, _ in SHARES}


def split(samples: Sequence[Sample]) -> Parts:
    """The parts, decided by the hash of a sample's inputs: the same data gives the same parts in any order.

    Samples are put in the order of their hashes and cut there, so that copies of one sample cannot fall into two
    parts; the first copy stays. Raises InvalidRequestError for too few samples, or inputs that never change.
    """
    distinct: dict[str, Sample] = {}
    for sample in samples:
        distinct.setdefault(sample.digest(), sample)
    require_telling(list(distinct.values()), len(samples))
    ordered = [distinct[key] for key in sorted(distinct)]
    total = sum(share for _, share in SHARES)
    first = len(ordered) * SHARES[0][1] // total
    second = first + len(ordered) * SHARES[1][1] // total
    return Parts(
        tuple(ordered[:first]), tuple(ordered[first:second]), tuple(ordered[second:]), len(samples) - len(distinct)
    )


def require_telling(distinct: Sequence[Sample], given_count: int) -> None:
    """Raise InvalidRequestError where the data cannot say how large values get."""
    import numpy as np

    if len(distinct) < FEWEST_IN_ALL:
        copies = given_count - len(distinct)
        text = f"{given_count} samples" + (f", {copies} of them copies," if copies else "")
        raise InvalidRequestError(
            f"{text} are too few: calibration, search and judging need {FEWEST_IN_ALL} different ones together",
            hint="a few hundred are usual, a thousand lets a drop of 0.5% be seen",
        )
    for name in distinct[0].inputs:
        arrays = [s.inputs[name] for s in distinct]
        if any(a.dtype.kind == "f" and not np.isfinite(a).all() for a in arrays):
            raise InvalidRequestError(f"the data for '{name}' holds NaN or infinity", hint="leave these samples out")
        telling = sum(a.size > 0 and bool(np.ptp(a.astype(np.float64)) > 0) for a in arrays if a.size > 1)
        scalars = [a for a in arrays if a.size == 1]
        if len(scalars) == len(arrays):
            if len({a.tobytes() for a in scalars}) == 1:
                raise _constant(name)
        elif telling * 2 < len(arrays):
            raise _constant(name)


def _constant(name: str) -> InvalidRequestError:
    return InvalidRequestError(
        f"most samples for '{name}' are constant: they cannot show how large values get inside the network",
        hint="give inputs as the network sees them in use",
    )
