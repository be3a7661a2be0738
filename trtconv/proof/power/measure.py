"""Trying faults one at a time: the part of the graph behind it is run, and the comparison of the check judges."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from trtconv.core.errors import TrtconvError
from trtconv.core.model.bodies import values_read
from trtconv.core.model.provenance import origin_of
from trtconv.core.report import OutputComparison
from trtconv.proof.power.catalogue import choose_faults
from trtconv.proof.power.downstream import downstream_of, everything, faulty_model
from trtconv.proof.power.effect import Effect, effect_of
from trtconv.proof.power.fault import Edit, Fault, FaultGraph
from trtconv.proof.power.result import LEAST_CHANGE, PowerResult, TriedFault
from trtconv.proof.reference import ReferenceSample

if TYPE_CHECKING:
    import numpy as np
    import onnx

    Array = np.ndarray[Any, np.dtype[Any]]
    Run = Callable[..., dict[str, Array]]
    Compare = Callable[[ReferenceSample, Mapping[str, Array]], tuple[OutputComparison, ...]]

# Values between the layers that are held for the faults' points, in bytes.
MOST_BYTES_HELD = 1 << 29
# So many faults are tried beyond the time too, until it is over by this factor: one or two tell nothing.
LEAST_FAULTS, PATIENCE = 8, 2.5


@dataclass(frozen=True)
class PowerRequest:
    """What to try. `open_model` makes a model runnable; `compare` is the check's own comparison.

    `stand_ins` are tensors that `open_model` takes in the place of the weights of these names, which are then not
    copied for each fault.
    `again` gives all samples once more, for faults that the few `samples` did not show; None leaves them missed.
    `seconds` is the time after which no further fault is begun, once there are a few. `least_change` as in PowerResult.
    """

    model: onnx.ModelProto
    open_model: Callable[[onnx.ModelProto], Run]
    compare: Compare
    samples: tuple[ReferenceSample, ...]
    again: Callable[[], Iterable[ReferenceSample]] | None = None
    count: int = 20
    seconds: float = float("inf")
    seed: int = 0
    least_change: float = LEAST_CHANGE
    stand_ins: Mapping[str, onnx.TensorProto] = field(default_factory=dict)


@dataclass(frozen=True)
class _Verdict:
    reported: bool
    effect: Effect


def measure_power(request: PowerRequest) -> PowerResult:
    """Try the faults. The unchanged graph is run once at each sample; then only what lies behind each fault.

    Raises TrtconvError when the unchanged graph itself does not run.
    """
    started = time.monotonic()
    if not request.samples:
        return PowerResult((), (), request.seed, 0.0, request.least_change, note="there is no sample to try them at")
    graph = FaultGraph(request.model, request.seed, request.stand_ins)
    frozen: dict[str, Array] = {}
    faults = choose_faults(graph, frozen, request.count)
    trial = _FaultTrial(request, graph, faults, frozen)
    faults = [f for f in faults if f.kind != "baked" or graph.nodes[f.index].output[0] in frozen]
    tried: list[TriedFault] = []
    missed: dict[int, tuple[Fault, Edit]] = {}
    for fault in faults:
        if tried and _is_over(time.monotonic() - started, request.seconds, len(tried)):
            break
        edit = fault.edit()
        verdict = trial.judge(fault, edit)
        outcome = _outcome(verdict, request.least_change)
        if outcome == "missed":
            missed[len(tried)] = (fault, edit)
        tried.append(_tried(graph, fault, outcome, verdict.effect))
    complete = len(tried) == len(faults)
    if missed and request.again is not None and time.monotonic() - started <= request.seconds:
        for position in _reported_elsewhere(request, graph, missed, trial.labels, started):
            tried[position] = _tried(graph, missed[position][0], "reported", Effect(tried[position].size))
    return PowerResult(
        tuple(tried), trial.labels, request.seed, time.monotonic() - started, request.least_change, complete
    )


def _is_over(elapsed: float, seconds: float, count: int) -> bool:
    return elapsed > seconds and (count >= LEAST_FAULTS or elapsed > PATIENCE * seconds)


def _outcome(verdict: _Verdict, least: float) -> str:
    if verdict.reported:
        return "reported"
    if verdict.effect.size <= least:
        return "no effect"
    return "missed" if verdict.effect.above_noise > 1.0 else "under noise"


def _tried(graph: FaultGraph, fault: Fault, outcome: str, effect: Effect) -> TriedFault:
    node = graph.nodes[fault.index]
    origin = origin_of(node)
    return TriedFault(
        fault.kind,
        node.name,
        node.op_type,
        origin.module,
        origin.source,
        fault.detail,
        outcome,
        effect.size,
        effect.output,
    )


class _FaultTrial:
    """The unchanged graph's values at the samples, as far as they are needed, and the judgement of each fault."""

    def __init__(
        self, request: PowerRequest, graph: FaultGraph, faults: Sequence[Fault], frozen: dict[str, Array]
    ) -> None:
        self.request, self.graph = request, graph
        reads = [set(values_read(n)) for n in graph.nodes]
        self.parts = {f.index: downstream_of(graph, f.index, reads) for f in faults}
        inputs = {v.name for v in graph.model.graph.input}
        outputs = [v.name for v in graph.model.graph.output]
        sizes = [n for f in faults if f.kind == "baked" for n in graph.nodes[f.index].output]
        inner = sorted({n for p in self.parts.values() for n in p.reads} - inputs - set(outputs))
        self._run, inner = _watching(request, graph, outputs, inner, sizes)
        held = {*inner, *inputs, *outputs}
        self.parts = {i: p if set(p.reads) <= held else everything(graph) for i, p in self.parts.items()}
        self.outputs = outputs
        self._waiting = list(request.samples)
        self._values: list[tuple[ReferenceSample, dict[str, Array]]] = []
        first = next(self._at_samples(), None)
        if first is not None:
            frozen.update({n: v for n, v in first[1].items() if n in sizes})

    @property
    def labels(self) -> tuple[str, ...]:
        """The points at which faults were tried."""
        return tuple(str(s.point) for s, _ in self._values)

    def _at_samples(self) -> Iterator[tuple[ReferenceSample, dict[str, Array]]]:
        """The samples with the unchanged graph's values, which are computed when a fault comes so far.

        Points at which the unchanged graph fails already say nothing about a fault, and are left out.
        """
        yield from list(self._values)
        while self._waiting:
            sample = self._waiting.pop(0)
            values = self._run(sample.inputs)
            if not self._reports(sample, {n: values[n] for n in self.outputs}):
                self._values.append((sample, {**sample.inputs, **values}))
                yield self._values[-1]

    def _reports(self, sample: ReferenceSample, outputs: Mapping[str, Array]) -> bool:
        return any(not c.passed for c in self.request.compare(sample, outputs))

    def judge(self, fault: Fault, edit: Edit) -> _Verdict:
        """Is the fault reported at one of the samples, and how much does it change?"""
        part = self.parts[fault.index]
        if not part.outputs or not self._values:
            return _Verdict(False, Effect())
        try:
            run = self.request.open_model(faulty_model(self.graph, part, fault.index, edit, self._values[0][1]))
        except TrtconvError:
            return _Verdict(True, Effect(float("inf")))
        largest = Effect()
        for sample, values in self._at_samples():
            try:
                after = run({n: values[n] for n in part.reads})
            except TrtconvError:
                return _Verdict(True, Effect(float("inf")))
            before = {n: values[n] for n in self.outputs}
            effect = effect_of(before, after, {n: f.error for n, f in sample.floors.items()})
            largest = largest.larger(effect)
            if effect.size > self.request.least_change and self._reports(sample, {**before, **after}):
                return _Verdict(True, effect)
        return _Verdict(False, largest)


def _watching(
    request: PowerRequest, graph: FaultGraph, outputs: list[str], inner: list[str], sizes: list[str]
) -> tuple[Run, list[str]]:
    """A runner that also gives the inner values that the faults' parts read; fewer where they are too large."""
    from onnx import ValueInfoProto

    extra = list(dict.fromkeys([*inner, *sizes]))
    model = graph.unchanged()
    model.graph.output.extend(ValueInfoProto(name=n) for n in extra if n not in outputs)
    try:
        run = request.open_model(model)
        first = run(request.samples[0].inputs)
    except TrtconvError:
        # A value that is not a tensor (a sequence) cannot be given out.
        return request.open_model(graph.unchanged()), []
    most = max(sum(a.nbytes for a in s.inputs.values()) for s in request.samples)
    growth = most / max(1, sum(a.nbytes for a in request.samples[0].inputs.values()))
    budget = MOST_BYTES_HELD / max(1.0, growth) / len(request.samples)
    chosen: list[str] = []
    # ONNX Runtime gives a sequence out as a list.
    for name in sorted((n for n in inner if hasattr(first[n], "nbytes")), key=lambda n: first[n].nbytes):
        budget -= first[name].nbytes
        if budget < 0:
            break
        chosen.append(name)
    output_names = list(dict.fromkeys([*outputs, *chosen, *sizes]))
    return (lambda inputs: run(inputs, output_names)), chosen


def _reported_elsewhere(
    request: PowerRequest,
    graph: FaultGraph,
    missed: Mapping[int, tuple[Fault, Edit]],
    tried: Iterable[str],
    started: float,
) -> set[int]:
    """Which of the missed faults the check reports at one of its other points."""
    assert request.again is not None
    whole, labels, reported = everything(graph), set(tried), set[int]()
    runs: dict[int, Run] = {}
    for sample in request.again():
        if str(sample.point) in labels or sample.point.advisory:
            continue
        for position, (fault, edit) in missed.items():
            if position in reported or time.monotonic() - started > request.seconds:
                continue
            try:
                if position not in runs:
                    runs[position] = request.open_model(faulty_model(graph, whole, fault.index, edit, sample.inputs))
                results = request.compare(sample, runs[position](sample.inputs))
            except TrtconvError:
                reported.add(position)
                continue
            if any(not r.passed for r in results):
                reported.add(position)
    return reported
