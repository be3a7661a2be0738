"""Which nodes have to stay in FP32 so that a typed graph meets a tolerance: a small set, by bisection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

import onnx

from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.errors import AccuracyError
from trtconv.core.precision import FP16
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import Arithmetic, allowances_without_floor
from trtconv.proof.comparison import compare_outputs, describe_failure, first_failure
from trtconv.rewrite.graph.index import Array
from trtconv.rewrite.precision.convert import convert_precision, half_nodes
from trtconv.rewrite.precision.report import PrecisionReport

RunModel = Callable[[onnx.ModelProto], Mapping[str, Array]]


@dataclass(frozen=True)
class Fp32Search:
    """What the search found: the nodes, the conversion with them, how many typed models were run.

    `complete` is False when the runs ran out: then the set works, but may be larger than it has to be.
    """

    nodes: tuple[str, ...]
    report: PrecisionReport
    runs: int
    complete: bool = True


class _OutOfRuns(Exception):
    """The allowance of runs is spent."""


class _PrecisionTrial:
    """Counts and remembers runs: does the graph meet the tolerance with these nodes in FP32?"""

    def __init__(
        self,
        run: RunModel,
        model: onnx.ModelProto,
        tolerance: Tolerance | None,
        precision: str,
        keep: Sequence[str],
        limit: int,
    ) -> None:
        self._run, self._model = run, model
        self._precision, self._keep, self.limit = precision, tuple(keep), limit
        self._known: dict[frozenset[str], bool] = {}
        self.runs, self.failure, self.spent = 0, "", False
        self._expected = run(model)
        self._allowed = allowances_without_floor(self._expected, tolerance, Arithmetic(precision))

    def convert(self, nodes: Collection[str]) -> PrecisionReport:
        return convert_precision(self._model, self._precision, keep_nodes=(*self._keep, *nodes))

    def __call__(self, nodes: Collection[str]) -> bool:
        key = frozenset(nodes)
        if key not in self._known:
            if self.runs >= self.limit:
                self.spent = True
                raise _OutOfRuns
            self.runs += 1
            actual = self._run(self.convert(nodes).model)
            failure = first_failure(compare_outputs("fp32 search", self._expected, actual, self._allowed))
            self.failure = "" if failure is None else describe_failure(failure)
            self._known[key] = failure is None
        return self._known[key]


def bisect_fp32_nodes(
    run: RunModel,
    model: onnx.ModelProto,
    tolerance: Tolerance | None = None,
    *,
    precision: str = FP16.name,
    keep_nodes: Sequence[str] = (),
    max_runs: int = 200,
) -> Fp32Search:
    """Find nodes to keep in FP32 so that the typed model's outputs agree with the FP32 model's.

    `run` gives a model's outputs by name for inputs that it knows; `emulated_run` makes one. The set is minimal in
    that leaving out any one node of it fails the tolerance, as long as more FP32 never makes things worse; it takes
    about k * log2(n / k) runs for k nodes of n. Raises AccuracyError when the tolerance is missed even with every node
    in FP32 (weights are then not the reason; the tolerance is).
    """
    trial = _PrecisionTrial(run, model, tolerance, precision, keep_nodes, max_runs)
    names = half_nodes(model, precision, keep_nodes)
    if trial(()):
        return Fp32Search((), trial.convert(()), trial.runs)
    if not trial(names):
        raise AccuracyError(
            f"the outputs miss the tolerance even with all nodes in FP32: {trial.failure}",
            hint="the tolerance is tighter than what a run repeats",
        )
    needed, complete = _needed(trial, names)
    chosen = tuple(n for n in names if n in needed)
    return Fp32Search(chosen, trial.convert(chosen), trial.runs, complete)


def _needed(trial: _PrecisionTrial, names: Sequence[str]) -> tuple[set[str], bool]:
    """The nodes, and whether the search came to its end."""
    needed: set[str] = set()
    try:
        # Once is enough as long as more FP32 never makes things worse; where it does, what is missing is looked for.
        while not trial(needed):
            rest = [n for n in names if n not in needed]
            needed |= set(_smallest(trial, tuple(sorted(needed)), bool(needed), rest))
    except _OutOfRuns:
        trial.limit += 1
        return (needed if trial(needed) else set(names)), False
    return needed, not trial.spent


def _smallest(trial: _PrecisionTrial, base: tuple[str, ...], changed: bool, names: Sequence[str]) -> tuple[str, ...]:
    """The part of `names` that is needed beside `base`: halves are tried in turn (QuickXplain, Junker 2004).

    Once no run is left, what has not been looked at is taken as needed: the result still meets the tolerance.
    """
    try:
        if changed and trial(base):
            return ()
        if len(names) == 1:
            return tuple(names)
    except _OutOfRuns:
        return tuple(names)
    middle = len(names) // 2
    first, second = names[:middle], names[middle:]
    late = _smallest(trial, (*base, *first), True, second)
    early = _smallest(trial, (*base, *late), bool(late), first)
    return (*early, *late)


def emulated_run(feeds: Mapping[str, Array], *, threads: int = 0) -> RunModel:
    """A `run` for bisect_fp32_nodes: ONNX Runtime on the CPU with half precision emulated, so that overflow shows."""

    def run(model: onnx.ModelProto) -> Mapping[str, Array]:
        outputs: Mapping[str, Array] = emulated_runner(model, threads=threads)(feeds)
        return outputs

    return run
