"""The few sample points at which faults are tried first: small ones, of other sizes, and of zero and large values."""

from __future__ import annotations

from trtconv.proof.reference import ReferenceSample


class TellingSamples:
    """Keeps, of samples that stream by, the smallest two of random values with other sizes, and one of other values.

    Only these stay in memory: at the smallest sizes, so little of it.
    """

    def __init__(self) -> None:
        self._random: list[ReferenceSample] = []
        self._others: dict[str, ReferenceSample] = {}

    def offer(self, sample: ReferenceSample) -> None:
        """Take the sample when it tells more than those that are here."""
        point = sample.point
        if point.advisory:
            return
        if point.values != "random":
            before = self._others.get(point.values)
            if before is None or _size(sample) < _size(before):
                self._others[point.values] = sample
            return
        # A size of one is broadcast where it should not be, so it tells less; a size above it comes first.
        listed = sorted([*self._random, sample], key=lambda s: (any(v == 1 for _, v in s.point.dims[1:]), _size(s)))
        chosen: list[ReferenceSample] = []
        for candidate in listed:
            if len(chosen) < 2 and all(candidate.point.dims != c.point.dims for c in chosen):
                chosen.append(candidate)
        self._random = chosen

    def chosen(self) -> tuple[ReferenceSample, ...]:
        """The samples, the most telling one first; `full` and `large` last, since they are ill conditioned at times."""
        order = ("zeros", "denormal", "large", "full")
        rest = [self._others[v] for v in order if v in self._others and _size(self._others[v]) <= 64 * self._least()]
        return (*self._random, *rest)

    def _least(self) -> int:
        return max(1, min((_size(s) for s in self._random), default=1))


def _size(sample: ReferenceSample) -> int:
    return sum(a.size for a in sample.inputs.values())
