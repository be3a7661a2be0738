"""The search: how much each group costs the metric, then the largest set in low precision that keeps the contract."""

from __future__ import annotations

from dataclasses import dataclass, replace

from trtconv.core.progress import Progress
from trtconv.tune.candidates import Candidate
from trtconv.tune.contract import Contract
from trtconv.tune.measure import Examiner, MetricScore, OutOfTime


@dataclass(frozen=True)
class Sensitivity:
    """One group alone in low precision: the metric it leaves, and the decibels of the worst output."""

    precision: str
    group: str
    nodes: int
    value: float
    decibels: float


@dataclass(frozen=True)
class Trial:
    """A candidate on the search part. `holds` says whether it keeps the contract there."""

    candidate: Candidate
    value: float
    decibels: float
    holds: bool


@dataclass(frozen=True)
class SearchResult:
    """The best candidate of one precision (None: not even one group keeps the contract), and all that was tried.

    `complete` is False when the budget ended first.
    """

    precision: str
    best: Candidate | None
    sensitivities: tuple[Sensitivity, ...]
    trials: tuple[Trial, ...]
    complete: bool = True

    def most_sensitive(self, candidate: Candidate) -> str:
        """The group of a candidate that alone does the most harm."""
        harm = {s.group: s.decibels for s in self.sensitivities}
        return min(candidate.groups, key=lambda g: harm.get(g, 0.0))


class PrecisionSearch:
    """The search of one precision, beside what everything else computes in."""

    def __init__(self, examiner: Examiner, contract: Contract, base: Candidate, progress: Progress) -> None:
        self._examiner, self._contract, self._base, self._progress = examiner, contract, base, progress
        self._reference = examiner.baseline("search")
        self._trials: dict[Candidate, Trial] = {}
        self._best: Candidate | None = None
        self._sensitivities: list[Sensitivity] = []

    def run(self) -> SearchResult:
        """Sensitivities, then the longest prefix of the least sensitive groups, then each group after it."""
        groups = self._examiner.models.groups(self._base.precision)
        complete = True
        try:
            for number, group in enumerate(groups):
                self._progress.phase(f"{self._base.precision}: sensitivity of {group.name}", number, len(groups))
                alone = self._examiner.measure(replace(self._base, groups=(group.name,)), "search")
                self._sensitivities.append(
                    Sensitivity(self._base.precision, group.name, len(group.nodes), alone.value, alone.decibels)
                )
            ordered = sorted(self._sensitivities, key=lambda s: -s.decibels)
            self._grow([s.group for s in ordered], [g.name for g in groups])
        except OutOfTime:
            complete = False
        return SearchResult(
            self._base.precision, self._best, tuple(self._sensitivities), tuple(self._trials.values()), complete
        )

    def _grow(self, ordered: list[str], names: list[str]) -> None:
        """The number of trials is about log2(n) for the prefix, and one for each group behind it."""

        def holds(chosen: list[str], what: str, completed: int = 0) -> bool:
            candidate = replace(self._base, groups=tuple(n for n in names if n in set(chosen)))
            self._progress.phase(f"{self._base.precision}: {what}", completed, len(ordered))
            return self._try(candidate)

        if holds(ordered, "all groups"):
            return
        low, high = 0, len(ordered)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if holds(ordered[:middle], "the least sensitive", middle) else (low, middle)
        chosen = ordered[:low]
        # Errors of two groups may cancel: a group behind one that fails may still fit.
        for number, group in enumerate(ordered[low + 1 :]):
            if holds([*chosen, group], f"with {group}", low + number):
                chosen.append(group)

    def _try(self, candidate: Candidate) -> bool:
        measured: MetricScore = self._examiner.measure(candidate, "search")
        kept_contract = self._contract.holds(measured.value, self._reference.value)
        self._trials[candidate] = Trial(candidate, measured.value, measured.decibels, kept_contract)
        if kept_contract and (self._best is None or len(candidate.groups) > len(self._best.groups)):
            self._best = candidate
        return kept_contract
