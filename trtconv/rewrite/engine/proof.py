"""The proof of a rewrite: what it replaces and what replaces it are run side by side and compared."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import onnx
from onnx import helper

from trtconv.backends.onnxruntime.graph_runner import ReferenceRunner, open_model
from trtconv.backends.onnxruntime.transforms import holds_transforms, with_exact_transforms
from trtconv.core.errors import TrtconvError
from trtconv.core.ledger.records import Proof
from trtconv.core.model.numbered import number_of, number_values
from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.comparison import describe_failure, first_failure
from trtconv.proof.original import Run
from trtconv.proof.probes.values import INFINITE_KINDS, PROBE_KINDS, probe_kinds, probe_values
from trtconv.proof.proving import compare_graphs
from trtconv.proof.values import tensor_values
from trtconv.rewrite.engine.points import Points
from trtconv.rewrite.engine.size_proof import SizeBudget, computes_with_sizes, prove_sizes
from trtconv.rewrite.graph.fragment import Fragment, FragmentInput
from trtconv.rewrite.graph.index import Array

Ranges = Mapping[str, tuple[float, float]]
# The probes of a part. Not the values that make a part ill conditioned:
# equal ones (their normalisation divides noise by noise), large ones in a product of two, those with a mean beside
# which a spectrum is small, and small ones, of which approximations of tanh keep no digit.
RULE_KINDS = tuple(k for k in PROBE_KINDS if k not in ("constant", "bytes", "unit", "small"))
# Values on the boundaries of decisions, where a graph jumps with inputs that move by rounding: that is not noise.
DECIDING_KINDS = ("ties", "edges")
# A difference of this share of an output's magnitude is a decision that fell to the other side, and no rounding.
STEP, HALF_STEP = 1e-3, 1e-2
# The values of integers whose range nothing tells.
INTEGERS = {"int": (0.0, 5.0)}
REFERENCE_ELEMENTS = 1 << 12


@dataclass
class Prover:
    """Proves fragments, each structure with its shapes once: a network repeats its blocks.

    `known` holds what was proved, by everything that enters a proof: both models with their constants, the shapes,
    the tolerance and the ranges of the values.
    """

    points: Points
    proofs: dict[bytes, Proof] = field(default_factory=dict)
    budget: SizeBudget = field(default_factory=SizeBudget)

    def __call__(self, fragment: Fragment, tolerance: Tolerance | None, ranges: Ranges, node: str = "") -> Proof:
        """Compare at the model's sample points; `passed` is None when nothing could be run.

        `node` names the place. The proof of an equal part is given back as it is; its `node` says whose it was.
        """
        unknown = [i.name for i in fragment.inputs if not i.type.dtype]
        if unknown:
            return Proof(None, note=f"the type of '{unknown[0]}' is not known")
        places = self.points.shapes(fragment.inputs)
        if not places:
            return Proof(None, note="no shapes are known at which this part could be run")
        key = _structure(fragment, places, tolerance, ranges)
        if key not in self.proofs:
            proof = self._proved(fragment, places, tolerance, ranges)
            if proof.passed is False and holds_transforms(fragment.before):
                before, after = (with_exact_transforms(m) for m in (fragment.before, fragment.after))
                proof = self._proved(replace(fragment, before=before, after=after), places, tolerance, ranges)
            self.proofs[key] = replace(proof, node=node)
        return self.proofs[key]

    def _proved(
        self,
        fragment: Fragment,
        places: Sequence[tuple[str, dict[str, tuple[int, ...]]]],
        tolerance: Tolerance | None,
        ranges: Ranges,
    ) -> Proof:
        proof = prove(fragment, places, tolerance, ranges)
        if proof.passed and computes_with_sizes(fragment):
            return self._at_all_sizes(proof, fragment, tolerance, ranges)
        return proof

    def _at_all_sizes(self, proof: Proof, fragment: Fragment, tolerance: Tolerance | None, ranges: Ranges) -> Proof:
        space = self.points.named_space(fragment.inputs)
        sides, runner, _ = _open(fragment)
        if not space.dims or sides is None or runner != "onnxruntime":
            return proof
        opened = sides

        def compare(label: str, at: dict[str, tuple[int, ...]]) -> Proof | None:
            if _alike(fragment, at, ranges, opened):
                return None
            return _compare_sides(fragment, [(label, at)], tolerance, ranges, opened, runner, only_random=True)

        def shapes_at(sizes: Mapping[str, int]) -> dict[str, tuple[int, ...]] | None:
            return self.points.shapes_at(fragment.inputs, {**self._smallest, **sizes})

        return prove_sizes(proof, space, shapes_at, compare, self.budget)

    @property
    def _smallest(self) -> dict[str, int]:
        return self.points.space.pick("min")


def prove(
    fragment: Fragment,
    places: Sequence[tuple[str, dict[str, tuple[int, ...]]]],
    tolerance: Tolerance | None,
    ranges: Ranges,
) -> Proof:
    """Run both sides at every place with random values, and at the first one with zeros and large values."""
    sides, runner, problem = _open(fragment)
    if sides is None:
        return Proof(None, runner, note=problem)
    proof = _compare_sides(fragment, places, tolerance, ranges, sides, runner)
    if proof.passed is None and runner == "onnxruntime":
        # ONNX Runtime takes some nodes that it then cannot run: antialias, modes and types that its kernels lack.
        try:
            sides = ReferenceRunner(fragment.before), ReferenceRunner(fragment.after)
        except TrtconvError:
            return proof
        again = _compare_sides(fragment, places, tolerance, ranges, sides, "onnx.reference")
        # A difference says nothing there: perhaps ONNX Runtime was right to refuse these values.
        return again if again.passed else proof
    return proof


def _compare_sides(
    fragment: Fragment,
    places: Sequence[tuple[str, dict[str, tuple[int, ...]]]],
    tolerance: Tolerance | None,
    ranges: Ranges,
    sides: tuple[Run, Run],
    runner: str,
    *,
    only_random: bool = False,
) -> Proof:
    trials = _trials(fragment, places, ranges, runner, only_random)
    comparison = _SideComparison(fragment, tolerance, sides)
    for trial in trials:
        feed = {i.name: _values(i, trial.shapes[i.name], trial.kind, ranges.get(i.name)) for i in fragment.inputs}
        comparison.add(trial, feed)
        if comparison.problem:
            break
    return comparison.proof(runner)


def _trials(
    fragment: Fragment,
    places: Sequence[tuple[str, dict[str, tuple[int, ...]]]],
    ranges: Ranges,
    runner: str,
    only_random: bool,
) -> list[_Trial]:
    """Random values at every place, the other kinds of values at the first one."""
    # Of random masks no long row is all false, and with zeros what it masks tells nothing: `none` is among the probes.
    fed = [i for i in fragment.inputs if not i.weight]
    values = ("zeros", "large", *probe_kinds(((kind_of(i), ranges.get(i.name)) for i in fed), RULE_KINDS))
    if runner != "onnxruntime":
        # The reference evaluator loops in Python: where no place is small, one with random values has to do.
        small = [p for p in places if sum(math.prod(s) for s in p[1].values()) <= REFERENCE_ELEMENTS]
        places, values = small or places[:1], values if small else ()
    kinds = () if only_random else values
    return [_Trial(label, shapes, "random") for label, shapes in places] + [_Trial(*places[0], kind) for kind in kinds]


@dataclass(frozen=True)
class _Trial:
    """The shapes of the inputs, and the kind of their values."""

    label: str
    shapes: Mapping[str, tuple[int, ...]]
    kind: str

    def __str__(self) -> str:
        return f"{self.label}, {self.kind}"


class _SideComparison:
    """Both sides of a fragment, run and compared trial by trial; a `problem` with the second one ends it."""

    def __init__(self, fragment: Fragment, tolerance: Tolerance | None, sides: tuple[Run, Run]) -> None:
        self._fragment, self._tolerance = fragment, tolerance
        self._before, self._after = sides
        self._results: list[OutputComparison] = []
        self._shapes: list[tuple[tuple[str, tuple[int, ...]], ...]] = []
        self._labels: list[str] = []
        self._notes: list[str] = []
        self._infinity = self.problem = ""
        self._nan = False

    def add(self, trial: _Trial, feed: Mapping[str, Array]) -> None:
        """Run both sides on a feed and keep what comes of it."""
        try:
            expected = self._before(feed)
        except TrtconvError as error:
            # The part does not run there before either: the guessed shapes do not fit each other.
            self._notes.append(error.message)
            return
        try:
            actual = dict(zip(self._fragment.outputs, self._after(feed).values(), strict=True))
        except TrtconvError as error:
            self.problem = f"after: {error.message}"
            return
        retyped = _retyped(self._fragment, actual)
        if retyped:
            self.problem = f"after: {retyped}"
        elif trial.kind not in INFINITE_KINDS:
            self._results += self._compare(trial, feed, expected, actual)
            self._shapes.append(tuple((n, tuple(s)) for n, s in trial.shapes.items()))
            self._labels.append(str(trial))
        elif _any_nan(expected):
            # Infinities of both signs met inside, and what became of them depends on the order of sums.
            self._nan = self._nan or any(not _same_specials(v, actual[n]) for n, v in expected.items())
        else:
            worse = first_failure(self._compare(trial, feed, expected, actual))
            self._infinity = self._infinity or (describe_failure(worse) if worse else "")

    def _compare(
        self, trial: _Trial, feed: Mapping[str, Array], expected: Mapping[str, Array], actual: Mapping[str, Array]
    ) -> tuple[OutputComparison, ...]:
        compare = compare_decided if trial.kind in DECIDING_KINDS else compare_graphs
        return compare(str(trial), self._before, feed, expected, actual, self._tolerance)

    def proof(self, runner: str) -> Proof:
        """What the trials together show."""
        record = runner, tuple(self._labels), tuple(self._shapes), tuple(self._results)
        if self.problem:
            return Proof(False, *record, self.problem)
        failure = first_failure(tuple(self._results))
        if failure is not None:
            return Proof(False, *record, describe_failure(failure))
        if not self._results:
            return Proof(None, runner, note=f"before: {self._notes[0]}" if self._notes else "nothing was compared")
        return Proof(True, *record, infinity=self._infinity, nan=self._nan)


def _any_nan(values: Mapping[str, Array]) -> bool:
    return any(v.dtype.kind == "f" and bool(np.isnan(v).any()) for v in values.values())


def _same_specials(expected: Array, actual: Array) -> bool:
    if expected.dtype.kind != "f" or expected.shape != actual.shape:
        return True
    special = ~(np.isfinite(expected) & np.isfinite(actual))
    return np.array_equal(expected[special], actual[special], equal_nan=True)


def compare_decided(
    point: str,
    before: Run,
    inputs: Mapping[str, Array],
    expected: Mapping[str, Array],
    actual: Mapping[str, Array],
    tolerance: Tolerance | None = None,
) -> tuple[OutputComparison, ...]:
    """Compare on boundaries, where the noise that is measured by moving the inputs would allow whole steps.

    Whole numbers among the inputs do not move: of bytes, the noise is that of their scales, and a step beside a tie.
    """
    results = compare_graphs(point, before, inputs, expected, actual, tolerance)
    if not any(v.dtype.kind in "fV" for v in inputs.values()):
        return results
    compared = []
    for result in results:
        half = actual[result.output].dtype.name in ("float16", "bfloat16")
        if result.passed and (result.max_scaled or 0.0) > (HALF_STEP if half else STEP):
            result = replace(result, passed=False, reason="differs by a step where the graph decides")
        compared.append(result)
    return tuple(compared)


def _alike(fragment: Fragment, at: Mapping[str, tuple[int, ...]], ranges: Ranges, sides: tuple[Run, Run]) -> bool:
    """True where the outputs differ by a rounding at most: no noise floor has to be measured for that."""
    feed = {i.name: _values(i, at[i.name], "random", ranges.get(i.name)) for i in fragment.inputs}
    try:
        pairs = list(zip(sides[0](feed).values(), sides[1](feed).values(), strict=True))
    except TrtconvError:
        return False
    return all(a.shape == b.shape and a.dtype == b.dtype and _equal(a, b) for a, b in pairs)


def _equal(a: Array, b: Array) -> bool:
    if a.dtype.name in ("float32", "float64"):
        return bool(np.allclose(b, a, rtol=1e-6, atol=1e-7, equal_nan=True))
    return np.array_equal(a, b)


def _retyped(fragment: Fragment, outputs: Mapping[str, Array]) -> str:
    """In words, the output that has another element type than the graph says; the comparison looks at values only."""
    for name, dtype in zip(fragment.outputs, fragment.dtypes, strict=False):
        if not dtype:
            continue
        dtype_name = onnx.TensorProto.DataType.Name(dtype).lower()
        dtype_after = outputs[name].dtype
        # onnx before 1.19 says float32 of bfloat16.
        if dtype_after != np.dtype(helper.tensor_dtype_to_np_dtype(dtype)) and dtype_after.name != dtype_name:
            return f"output '{name}' has dtype {dtype_after}, in the graph it is {dtype_name}"
    return ""


def _values(item: FragmentInput, shape: tuple[int, ...], kind: str, bounds: tuple[float, float] | None) -> Array:
    dtype = np.dtype(helper.tensor_dtype_to_np_dtype(item.type.dtype))
    if kind not in PROBE_KINDS or item.weight:
        return tensor_values(item.name, shape, dtype, kind, bounds=bounds, constant=item.weight)
    random = tensor_values(item.name, shape, dtype, "random", bounds=bounds)
    return probe_values(kind, random, bounds or INTEGERS.get(kind_of(item)))


def kind_of(item: FragmentInput) -> str:
    """`bool`, `int` or `float`."""
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(item.type.dtype)).kind
    return {"b": "bool", "i": "int", "u": "int"}.get(kind, "float")


def _open(fragment: Fragment) -> tuple[tuple[Run, Run] | None, str, str]:
    """Each side in ONNX Runtime, or in the reference evaluator where it lacks an op."""
    try:
        sides = [open_model(model) for model in (fragment.before, fragment.after)]
    except TrtconvError as error:
        return None, "", error.message
    names = dict.fromkeys(name for _, name in sides)
    return (sides[0][0], sides[1][0]), " and ".join(names), ""


def _structure(
    fragment: Fragment,
    places: Sequence[tuple[str, dict[str, tuple[int, ...]]]],
    tolerance: Tolerance | None,
    ranges: Ranges,
) -> bytes:
    """Everything that enters the proof, with values numbered instead of named: equal for repeated blocks."""
    numbers: dict[str, str] = {}
    parts: list[bytes] = []
    for model in (fragment.before, fragment.after):
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        number_values(copy.graph, numbers, ordered=True)
        parts.append(copy.SerializeToString(deterministic=True))
    shapes = sorted((number_of(numbers, i.name), i.weight, [at[i.name] for _, at in places]) for i in fragment.inputs)
    bounds = sorted((number_of(numbers, name), bound) for name, bound in ranges.items())
    outputs = [(number_of(numbers, o), dtype) for o, dtype in zip(fragment.outputs, fragment.dtypes, strict=True)]
    rest = repr((shapes, bounds, outputs, tolerance))
    return hashlib.sha256(b"|".join([*parts, rest.encode()])).digest()
