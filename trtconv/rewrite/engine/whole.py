"""The comparison of the two whole graphs, once, after all rules."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import cached_property

import onnx

from trtconv.backends.onnxruntime.cpu import OnnxRuntimeRunner
from trtconv.backends.onnxruntime.graph_runner import ReferenceRunner, open_model
from trtconv.backends.onnxruntime.transforms import holds_transforms, with_exact_transforms
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import Proof
from trtconv.core.model.bodies import walk_nodes
from trtconv.core.model.drawing import DRAWING
from trtconv.core.model.file import external_files
from trtconv.core.report import OutputComparison
from trtconv.core.shape_space.fixed_rows import FixedRows
from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import TensorSpec, value_ranges
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.original import FormedRun
from trtconv.proof.original import Run as Runner
from trtconv.proof.points import BOUNDARY, SamplePoint, sample_inputs, sample_points
from trtconv.proof.probes.boundaries import probe_boundaries
from trtconv.proof.probes.masks import MASK_KINDS
from trtconv.proof.probes.values import INFINITE_KINDS
from trtconv.proof.proving import compare_graphs, without_undefined
from trtconv.proof.sizes import elements, small_points
from trtconv.rewrite.engine.proof import DECIDING_KINDS, compare_decided
from trtconv.rewrite.graph.index import Array

MAX_BYTES = 1 << 30
MAX_POINTS = 3
# A difference of more than this share of an output's magnitude is told, although the noise floor allows it.
REMARKABLE = 1e-4
# The probes at which the whole is compared. The others are ranges: what they change happens in the parts.
WHOLE_KINDS = ("ties", "edges", *MASK_KINDS, *INFINITE_KINDS)
# Inputs of so many elements have every kind of value among them.
FEWEST_ELEMENTS = 1 << 12
# Above this, one point with random values and the one with zeros have to do.
MANY_NODES = 10_000


class InitialGraph:
    """The graph before the rewrite, which is opened and run in a second thread, once, while the rules go on.

    Making a session of a large graph takes as long as rewriting it. `start` is called when something was rewritten;
    use the object in a `with`, which waits for the thread. `form` is the form in which the graph after gives outputs
    whose number of rows the values decide.
    """

    def __init__(
        self, model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], form: FixedRows | None = None
    ) -> None:
        self._model, self._space, self._specs, self._form = model, space, specs, form
        self._thread = ThreadPoolExecutor(max_workers=1)
        self._ran: Future[tuple[list[OriginalRun], str]] | None = None
        self._exact = False

    def __enter__(self) -> InitialGraph:
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.shutdown(cancel_futures=True)

    @cached_property
    def unreadable(self) -> str:
        """Why the whole graph is not run, or nothing."""
        return unreadable(self._model)

    def start(self) -> None:
        """Begin to run the graph; nothing when it runs already, or cannot be."""
        if self._ran is None and not self.unreadable:
            self._ran = self._thread.submit(_run_all, self._model, self._space, self._specs, self._exact, self._form)

    def compare(self, after: onnx.ModelProto) -> Proof:
        """Compare at the two smallest distinct shapes with random values, at the smallest with zeros.

        Then at the probes of the inputs' types, and where the graph decides; an infinity does not count in `passed`.

        In the reference evaluator, which takes over where ONNX Runtime lacks an op, at the smallest with random
        values. `passed` is None when the graph before could not be run.
        """
        proof = self._compared(after)
        if proof.passed is False and not self._exact and (_is_rough(self._model) or _is_rough(after)):
            # One of them may have another form of what ONNX Runtime computes roughly.
            self._ran, self._exact = None, True
            proof = self._compared(after)
        return proof

    def _compared(self, after: onnx.ModelProto) -> Proof:
        self.start()
        if self._ran is None:
            return Proof(None, note=self.unreadable)
        last: Runner | TrtconvError
        try:
            subject = with_exact_transforms(after) if self._exact else after
            last = OnnxRuntimeRunner(subject.SerializeToString(), threads=1, exact=self._exact)
        except TrtconvError as error:
            last = error
        try:
            runs, runner = self._ran.result()
        except TrtconvError as error:
            return Proof(None, note=f"before: {error.message}")
        if not isinstance(last, TrtconvError):
            return _compare(runs, last, " and ".join(dict.fromkeys((runner, "onnxruntime"))))
        if runner == "onnxruntime":
            # It took the graph before: what it says of the one after is not about an op that it lacks.
            return Proof(False, runner, note=f"after: {last.message}")
        try:
            return _compare(runs, ReferenceRunner(after), runner)
        except TrtconvError as error:
            return Proof(False, runner, note=f"after: {last.message}; {error.message}")


@dataclass(frozen=True)
class OriginalRun:
    """One point, its inputs, and the outputs of the graph before or why it does not run there."""

    point: SamplePoint
    feed: dict[str, Array]
    expected: dict[str, Array]
    runner: Runner
    problem: str = ""


def unreadable(model: onnx.ModelProto) -> str:
    """Why a whole graph is not run, or nothing. Weights on disk are not read for this."""
    if external_files(model):
        return "the weights are on disk and were not read; `trtconv check` compares the whole graph"
    if model.ByteSize() > MAX_BYTES:
        return "the model is over 1 GiB; `trtconv check` compares the whole graph"
    if _draws(model.graph):
        return "the graph draws random numbers, so that no two runs are alike"
    return ""


def _is_rough(model: onnx.ModelProto) -> bool:
    """True of a model with operators that ONNX Runtime computes less exactly than they are defined."""
    return holds_transforms(model) or any(node.op_type == "Sigmoid" for node in walk_nodes(model.graph.node))


def _draws(graph: onnx.GraphProto) -> bool:
    """True when some node, in bodies too, makes random numbers."""
    return any(node.op_type in DRAWING for node in walk_nodes(graph.node))


def _run_all(
    model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], exact: bool, form: FixedRows | None
) -> tuple[list[OriginalRun], str]:
    runner, name = open_model(with_exact_transforms(model) if exact else model, exact=exact)
    if form is not None:
        runner = FormedRun(runner, form)
    points = small_points(space, specs, MAX_POINTS - 1)
    if name != "onnxruntime":
        points = points[:1]
    elif len(model.graph.node) > MANY_NODES:
        # Random values at the smallest shape, zeros at the next one.
        points = [points[0], replace(points[-1], dims=points[1].dims)] if len(points) > 1 else points
    fed = [(point, sample_inputs(specs, point)) for point in points]
    if name == "onnxruntime" and len(model.graph.node) <= MANY_NODES:
        fed += _probes(model, space, specs, points[0])
    runs = []
    for point, feed in fed:
        try:
            runs.append(OriginalRun(point, feed, runner(feed), runner))
        except TrtconvError as error:
            # A graph may refuse what it was never meant for; of usual values that is worth telling.
            runs += [] if point.probes else [OriginalRun(point, feed, {}, runner, error.message)]
    return runs, name


def _probes(
    model: onnx.ModelProto, space: ShapeSpace, specs: tuple[TensorSpec, ...], at: SamplePoint
) -> list[tuple[SamplePoint, dict[str, Array]]]:
    """The probes by type, and the inputs that lie where the graph decides, at the sizes of a point."""
    # Masks need rows; what else is decided, a large graph decides at the smallest sizes too.
    small = at.dims if elements(specs, at) >= FEWEST_ELEMENTS else None
    points = [
        replace(p, dims=small) if small is not None and not p.masks else p
        for p in sample_points(space, specs)
        if p.values in WHOLE_KINDS
    ]
    fed = [(p, sample_inputs(specs, p)) for p in points]
    bounds = value_ranges(specs)
    boundaries = probe_boundaries(model, sample_inputs(specs, at), lambda part: open_model(part)[0], bounds)
    named = (replace(at, label=f"boundary-{i + 1}", values=BOUNDARY) for i in range(len(boundaries.feeds)))
    return [*fed, *zip(named, boundaries.feeds, strict=True)]


def _compare(runs: list[OriginalRun], last: Runner, runner: str) -> Proof:
    results: list[OutputComparison] = []
    shapes, labels, notes, infinity = [], [], [], ""
    for run in runs:
        if run.problem:
            notes.append(f"before, at {run.point}: {run.problem}")
            continue
        try:
            actual = last(run.feed)
        except TrtconvError as error:
            return Proof(False, runner, note=f"after, at {run.point}: {error.message}")
        if run.point.advisory:
            infinity = infinity or _spread(run, actual)
            continue
        compared = _compare_run(run, actual)
        remarkable = [c for c in compared if c.passed and (c.max_scaled or 0.0) > REMARKABLE]
        moved = max((c.max_abs or 0.0 for c in remarkable), default=0.0)
        if moved:
            notes.append(f"at {run.point} rounding alone moves the outputs by {moved:.2g}; that is allowed")
        results += compared
        shapes.append(tuple((n, tuple(a.shape)) for n, a in run.feed.items()))
        labels.append(str(run.point))
    failure = first_failure(tuple(results))
    note = describe_failure(failure) if failure else "; ".join(notes)
    passed = failure is None if results else None
    return Proof(passed, runner, tuple(labels), tuple(shapes), tuple(results), note, infinity=infinity)


def _compare_run(run: OriginalRun, actual: dict[str, Array]) -> tuple[OutputComparison, ...]:
    """On boundaries a graph jumps with inputs that move by rounding, so that there its noise is not measured so."""
    if run.point.values in (*DECIDING_KINDS, BOUNDARY):
        return compare_decided(str(run.point), run.runner, run.feed, run.expected, actual)
    return compare_graphs(str(run.point), run.runner, run.feed, run.expected, actual)


def _spread(run: OriginalRun, actual: dict[str, Array]) -> str:
    """What an infinity in the inputs changes, besides elements of which the graph before makes NaN."""
    unspoilt = {n: without_undefined(run.expected.get(n), v) for n, v in actual.items()}
    worse = first_failure(_compare_run(run, unspoilt))
    return describe_failure(worse) if worse else ""
