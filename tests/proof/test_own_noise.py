"""The original's noise is measured no further than needed, and a model is run once at each sample point."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from trtconv.core.errors import TrtconvError
from trtconv.proof.noise.rounding import MANY_SEEDS, SEEDS, own_errors, sensitive_outputs
from trtconv.proof.original import Run
from trtconv.proof.points import SamplePoint
from trtconv.proof.proving import RememberedRuns, prove
from trtconv.proof.reference import ReferenceSample
from trtconv.proof.sampling import run_samples, with_floors, with_rounding
from trtconv.proof.sizes import Budget

Arrays = Mapping[str, Any]
X = np.linspace(-2, 2, 64, dtype=np.float32)


class CountedSquare:
    """x * x with a count of its runs; its FP64 is off by 1e-3 at one element, each perturbed run at another."""

    weight_bytes = 0

    def __init__(self) -> None:
        self.runs: list[str] = []

    def __call__(self, inputs: Arrays) -> dict[str, Any]:
        self.runs.append("own")
        return {"y": inputs["x"] * inputs["x"]}

    def _off_at(self, index: int, name: str) -> Run:
        def run(inputs: Arrays) -> dict[str, Any]:
            self.runs.append(name)
            y = inputs["x"] * inputs["x"]
            y[index] += 1e-3
            return {"y": y}

        return run

    def exact(self) -> Run | None:
        return self._off_at(0, "exact")

    def perturbed(self, seed: int) -> Run | None:
        return self._off_at(1 + seed, f"perturbed {seed}")

    def flushed(self, inputs: Arrays) -> dict[str, Any]:
        return self(inputs)


def sample_at(values: str) -> ReferenceSample:
    return ReferenceSample(SamplePoint("p", (), values), {"x": X}, {"y": X * X})


def test_own_errors_grow_and_end_with_what_a_point_of_its_kind_can_tell() -> None:
    original = CountedSquare()
    stages = list(own_errors(original, sample_at("unit")))
    draws = [f"perturbed {seed}" for seed in range(MANY_SEEDS)]
    # The last draws move the inputs further.
    assert original.runs == ["exact", *draws, *draws[:SEEDS]]
    assert [int((s["y"] > 5e-4).sum()) for s in stages] == [*range(1, MANY_SEEDS + 2), *[MANY_SEEDS + 1] * SEEDS]
    at_random = CountedSquare()
    assert len(list(own_errors(at_random, sample_at("random")))) == MANY_SEEDS + 1
    assert at_random.runs == ["exact", *draws]


@pytest.mark.parametrize(("last", "runs"), [(0, 1), (1, 2), (3, 4)])
def test_measuring_ends_when_it_is_enough(last: int, runs: int) -> None:
    original = CountedSquare()
    points = [SamplePoint("p", (), "random", seed) for seed in range(3)]
    samples = run_samples(original, (), [points[0]], lambda _: {"x": X}, False, Budget())
    special = sample_at("unit")
    samples = type(samples)((*samples.items, special), errors=samples.errors, profiles=samples.profiles)
    original.runs.clear()
    measured = with_rounding(samples, special.point, original, enough=lambda s: bool(s.floors["y"].error[last] > 1e-5))
    assert measured is not None
    assert len(original.runs) == runs
    assert "own noise was measured" in measured.notes[-1]


@pytest.mark.parametrize("values", ["random", "zeros", "unit"])
def test_what_is_measured_at_one_point_gives_the_floors_that_all_errors_give(values: str) -> None:
    original = CountedSquare()
    points = [SamplePoint("p", (), kind, 1) for kind in ("random", "zeros", "unit")]
    points.append(SamplePoint("q", (), "random", 2))
    draws = {p: {"x": np.random.default_rng(i).normal(size=16).astype(np.float32)} for i, p in enumerate(points)}
    samples = run_samples(original, (), points, lambda p: draws[p], False, Budget())
    at = next(p for p in points if p.values == values)
    measured = with_rounding(samples, at, original)
    assert measured is not None
    for one, other in zip(measured.items, with_floors(measured).items, strict=True):
        np.testing.assert_array_equal(one.floors["y"].error, other.floors["y"].error)
        np.testing.assert_array_equal(one.floors["y"].scale, other.floors["y"].scale)


def test_a_model_runs_once_with_the_same_inputs() -> None:
    runs: list[int] = []

    def run(inputs: Arrays) -> dict[str, Any]:
        runs.append(1)
        return {"y": inputs["x"] * inputs["x"]}

    remembered = RememberedRuns(lambda: run)
    samples = [sample_at("unit"), ReferenceSample(SamplePoint("q", ()), {"x": X[:8]}, {"y": X[:8] ** 2})]
    assert all(prove(remembered.opened, samples).equal for _ in range(2))
    assert len(runs) == 2
    remembered.model()(samples[0].inputs)
    assert len(runs) == 3


def test_outputs_that_are_too_large_are_computed_again() -> None:
    runs: list[int] = []

    def run(inputs: Arrays) -> dict[str, Any]:
        runs.append(1)
        return dict(inputs)

    remembered = RememberedRuns(lambda: run, _left=X.nbytes)
    for inputs in ({"x": X}, {"x": X + 1}):
        assert remembered(inputs)["x"] is inputs["x"]
        assert remembered(inputs)["x"] is inputs["x"]
    assert len(runs) == 3


def test_a_model_that_cannot_be_opened_is_no_proof() -> None:
    def refuse() -> Run:
        raise TrtconvError("no such operator")

    verdict = prove(RememberedRuns(refuse).opened, [sample_at("random")])
    assert verdict.failure is not None
    assert verdict.failure.reason == "no such operator"


@pytest.mark.parametrize(("exact_error", "sensitive"), [(1e-7, {"y"}), (1e-3, set())])
def test_a_function_that_turns_with_its_input_is_no_rounding(exact_error: float, sensitive: set[str]) -> None:
    rounding = {"y": np.full(64, exact_error, np.float32)}
    changes = [{"y": np.full(64, 1e-2, np.float32)} for _ in range(3)]
    assert sensitive_outputs(rounding, changes) == sensitive
    # A decision that falls otherwise in one of the changes is the original's own.
    assert sensitive_outputs(rounding, [*changes, {"y": np.full(64, 1e-8, np.float32)}]) == set()
