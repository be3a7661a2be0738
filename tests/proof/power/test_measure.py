"""Counting: what a comparison reports, what it misses, and what no comparison could see."""

from dataclasses import replace

import numpy as np
import pytest

from trtconv.backends.onnxruntime import shared_weights
from trtconv.backends.onnxruntime.half_emulation import emulated_runner
from trtconv.core.report import OutputComparison
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allowances
from trtconv.proof.comparison import compare_outputs
from trtconv.proof.noise.noise_floor import NoiseFloor
from trtconv.proof.power.effect import column_scales, effect_of
from trtconv.proof.power.measure import PowerRequest, measure_power
from trtconv.proof.power.points import TellingSamples

from .heads import HEADS, head_model, samples_of


def comparison(tolerance):
    return lambda sample, outputs: compare_outputs(
        str(sample.point), sample.outputs, outputs, allowances(sample, tolerance)
    )


def telling_samples(samples):
    selection = TellingSamples()
    for sample in samples:
        selection.offer(sample)
    return selection.chosen()


def measure(kind, compare, **over):
    model = head_model(kind)
    samples = samples_of(model)
    values = {"model": model, "open_model": emulated_runner, "compare": compare, "samples": telling_samples(samples)}
    return measure_power(PowerRequest(**(values | over)))


@pytest.fixture(scope="module")
def exact():
    """A comparison that takes only what is equal to the last bit."""

    def compare(sample, outputs):
        passed = np.array_equal(outputs["y"], sample.outputs["y"], equal_nan=True)
        return (OutputComparison("y", str(sample.point), passed, "", (), ()),)

    return compare


@pytest.mark.parametrize("kind", HEADS)
def test_the_noise_floor_reports_every_fault_on_every_head(kind):
    result = measure(kind, comparison(None), count=1000)
    assert result.changed >= 40
    assert result.share >= 0.99


@pytest.mark.parametrize("kind", HEADS)
def test_an_exact_comparison_reports_every_fault(kind, exact):
    result = measure(kind, exact, count=25)
    assert result.changed >= 15
    assert result.share == 1.0
    assert len({f.kind for f in result.faults}) >= 8


def test_a_comparison_that_takes_everything_reports_only_other_shapes():
    result = measure("segmenter", comparison(Tolerance(1e9, 1e9)), count=25)
    assert not [f for f in result.of("reported") if f.size < 1e30]
    assert len(result.of("missed")) >= 15
    assert "axis" not in {f.kind for f in result.of("no effect")}


def test_a_loose_tolerance_misses_what_a_tight_one_reports():
    tight = measure("classifier", comparison(Tolerance(1e-6, 1e-9)), count=30)
    loose = measure("classifier", comparison(Tolerance(1e-4, 1e-4)), count=30)
    assert tight.share == 1.0
    assert loose.share < 0.8
    assert max(f.size for f in loose.of("missed")) > 1e-3


def test_a_missed_fault_is_tried_at_the_other_points_too():
    model = head_model("plain")
    samples = samples_of(model)
    few = tuple(s for s in samples if s.point.values == "zeros")
    everywhere = comparison(Tolerance(1e-5, 1e-5))

    def blind_at_zeros(sample, outputs):
        results = everywhere(sample, outputs)
        return tuple(replace(r, passed=True) for r in results) if sample.point.values == "zeros" else results

    request = PowerRequest(model, emulated_runner, blind_at_zeros, few, count=15)
    alone = measure_power(request)
    assert alone.of("missed")
    assert not [f for f in alone.of("reported") if np.isfinite(f.size)]
    assert not measure_power(replace(request, again=lambda: samples)).of("missed")


def test_what_the_originals_own_rounding_hides_is_not_counted():
    model = head_model("plain")
    noise = NoiseFloor(np.full((1, 1), 1e6), np.ones((1, 1)), np.zeros((1, 1), bool))
    samples = [replace(s, floors={"y": noise}) for s in samples_of(model)]
    request = PowerRequest(
        model, emulated_runner, comparison(Tolerance(1e-4, 1e-4)), telling_samples(samples), count=12
    )
    result = measure_power(request)
    assert result.changed <= 1, "only a change of the shape is over such a noise"
    assert len(result.of("under noise")) >= 8
    assert result.share in (None, 1.0)


def test_the_time_ends_it_after_one_fault(exact):
    result = measure("plain", exact, count=25, seconds=0.0)
    assert len(result.faults) == 1
    assert not result.complete
    assert "the time was up" in result.line()


def test_nothing_is_measured_without_samples(exact):
    result = measure("plain", exact, samples=())
    assert result.share is None
    assert result.line().startswith("not measured")


def test_points_at_which_the_subject_fails_are_left_out():
    def failing_at_large(sample, outputs):
        wrong = sample.point.values == "large"
        return (OutputComparison("y", str(sample.point), not wrong, "", (), ()),)

    result = measure("plain", failing_at_large, count=5)
    assert not [f for f in result.of("reported") if np.isfinite(f.size)]
    assert not [p for p in result.points if "large" in p]


def test_the_scale_is_that_of_a_column_where_it_has_elements():
    random = np.random.default_rng(0)
    boxes, scores = 500 * random.random((1, 100, 4)), 0.01 * random.random((1, 100, 1))
    values = np.concatenate([boxes, scores], axis=2)
    scales = np.broadcast_to(column_scales(values), values.shape)
    assert scales[0, 0, 4] < 0.02
    wrong = values.copy()
    wrong[..., 4] *= 1.1
    assert effect_of({"y": values}, {"y": wrong}, {}).size > 0.05
    few = np.asarray([[100.0, 1e-6]])
    assert effect_of({"y": few}, {"y": few + 1e-6}, {}).size < 1e-7, "two elements are not columns"


def test_integers_and_infinities_that_change_have_no_size():
    whole = np.asarray([1, 2, 3])
    assert effect_of({"y": whole}, {"y": whole}, {}).size == 0.0
    assert effect_of({"y": whole}, {"y": whole + 1}, {}).size == np.inf


def test_the_size_of_a_change_of_an_output_without_dims():
    one = np.array(2.0, np.float32)
    assert effect_of({"y": one}, {"y": one}, {}).size == 0.0
    assert effect_of({"y": one}, {"y": np.array(3.0, np.float32)}, {}).size == pytest.approx(0.5)
    assert effect_of({"y": one}, {"y": np.array(np.nan, np.float32)}, {}).size == np.inf
    some = np.asarray([1.0, np.inf, np.nan])
    assert effect_of({"y": some}, {"y": some}, {}).size == 0.0
    assert effect_of({"y": some}, {"y": np.asarray([1.0, 2.0, np.nan])}, {}).size == np.inf


def test_the_unchanged_graph_runs_at_as_many_points_as_the_faults_need():
    # The fault is another axis of Flatten, which a batch over 1 shows.
    samples = telling_samples(samples_of(head_model("classifier")))[::-1]
    assert len(samples) > 1
    tight = measure("classifier", comparison(None), count=1, samples=samples)
    assert (len(tight.of("reported")), tight.points) == (1, (str(samples[0].point),))
    loose = measure("classifier", comparison(Tolerance(1e9, 1e9)), count=6, samples=samples)
    assert loose.points == tuple(str(s.point) for s in samples)


@pytest.mark.parametrize("head", ["plain", "segmenter", "classifier"])
def test_the_outcomes_are_the_same_where_faults_share_the_weights(exact, head, monkeypatch):
    monkeypatch.setattr(shared_weights, "LEAST_BYTES", 64)
    weights = shared_weights.SharedWeights(head_model(head))
    shared = measure(head, exact, open_model=weights.open, stand_ins=weights.stand_ins)
    assert weights.stand_ins
    assert [(f.kind, f.node, f.outcome, f.size) for f in shared.faults] == [
        (f.kind, f.node, f.outcome, f.size) for f in measure(head, exact).faults
    ]
