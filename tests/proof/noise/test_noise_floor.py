import numpy as np
import pytest

from trtconv.proof.allowance import allow
from trtconv.proof.comparison import compare_output
from trtconv.proof.noise.noise_floor import OWN, TYPICAL, noise_floors, profile
from trtconv.proof.noise.rounding import moved
from trtconv.proof.statistics.columns import column_axes, magnitudes, typical_errors


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape)


def noisy(values, seed, relative=1e-7):
    """The values and what an evaluation in FP32 may be off from them."""
    return np.abs(normal(seed, *values.shape) * relative * np.abs(values).std()).astype(np.float32)


def differs(floor, want, actual):
    return not compare_output("y", "p", want, np.asarray(actual, np.float32), allow(want, floor)).passed


@pytest.mark.parametrize(
    ("shapes", "axes"),
    [
        ([(2, 8, 5, 7), (1, 8, 9, 4)], (1,)),
        ([(2, 100, 6), (1, 50, 6)], (2,)),
        ([(2, 84, 100), (2, 84, 100)], (1, 2)),
        ([(4, 10), (7, 10)], (1,)),
        ([(1, 10)], ()),
        ([(5,), (7,)], ()),
        ([()], ()),
    ],
)
def test_columns_are_along_channels_and_the_last_axis(shapes, axes):
    assert column_axes(shapes) == axes


@pytest.mark.parametrize("seed", range(5))
def test_another_evaluation_is_no_alarm(seed):
    values = [normal(seed * 10 + i, 4, 6, 50).astype(np.float32) for i in range(3)]
    (floor, *_), _ = noise_floors([{"y": v} for v in values], [{"y": noisy(v, 9)} for v in values], [True] * 3)
    for other in range(50):
        assert not differs(floor["y"], values[0], values[0] + normal(other, 4, 6, 50) * 1e-7)


def test_a_small_fault_is_found():
    values = [normal(i, 4, 6, 50).astype(np.float32) for i in range(3)]
    (floor, *_), _ = noise_floors([{"y": v} for v in values], [{"y": noisy(v, 9)} for v in values], [True] * 3)
    for column in range(6):
        faulty = values[0].astype(np.float64)
        faulty[:, column] *= 1 + 2e-5
        assert differs(floor["y"], values[0], faulty)


def test_outputs_of_small_magnitude_are_held_to_it():
    values = normal(0, 4, 1000).astype(np.float32) * np.float32(1e-3)
    floor = profile([values], [noisy(values, 1)]).floor(values, noisy(values, 1))
    assert differs(floor, values, values * 1.0001)


def test_boxes_in_pixels_hide_no_scores():
    boxes, scores = normal(0, 2, 4, 300) * 300, np.random.default_rng(1).random((2, 2, 300))
    values = np.concatenate([boxes, scores], 1).astype(np.float32)
    errors = np.concatenate([noisy(boxes, 2), noisy(scores, 3)], 1)
    floor = profile([values], [errors]).floor(values, errors)
    faulty = values.copy()
    faulty[:, 4] *= 0.9999
    assert differs(floor, values, faulty)


def with_ids(count=300):
    scores, ids = (
        np.random.default_rng(1).random((2, 1, count)),
        np.random.default_rng(2).integers(0, 80, (2, 1, count)),
    )
    return np.concatenate([scores * 640, ids], 1).astype(np.float32)


@pytest.mark.parametrize("precision", ["fp32", "fp16", "bf16"])
def test_whole_numbers_are_exact_in_every_precision(precision):
    from trtconv.proof.allowance import Arithmetic

    values = with_ids()
    errors = np.concatenate([noisy(values[:, :1], 1), np.zeros((2, 1, 300), np.float32)], 1)
    floor = profile([values], [errors], [values, values]).floor(values, errors)
    assert floor.exact.reshape(-1).tolist() == [False, True]
    assert not profile([values], [errors]).floor(values, errors).exact.any(), "at one point it may be by chance"
    faulty = values.copy()
    faulty[1, 1, 7] += 1
    allowance = allow(values, floor, arithmetic=Arithmetic(precision, engine=True))
    assert not compare_output("y", "p", values, faulty, allowance).passed
    assert compare_output("y", "p", values, values, allowance).passed


def test_a_constant_one_is_no_count():
    values = np.concatenate([np.ones((4, 1, 20)), normal(0, 4, 1, 20)], 1).astype(np.float32)
    assert not profile([values] * 3, [np.zeros_like(values)] * 3).floor(values).exact.any()


def test_one_flip_loosens_its_own_element_only():
    values = normal(0, 4, 6, 250).astype(np.float32)
    errors = noisy(values, 1)
    errors[1, 2, 7] = 1.0
    floor = profile([values], [errors]).floor(values, errors)
    here, beside = values.copy(), values.copy()
    here[1, 2, 7] += OWN * 0.9
    beside[2, 2, 100] += 0.001
    assert not differs(floor, values, here)
    assert differs(floor, values, beside)


def test_a_flip_of_a_whole_number_is_allowed_where_it_was_measured_to_the_same_step():
    values = np.random.default_rng(0).integers(0, 9, (4, 500))
    errors = np.zeros(values.shape, np.float32)
    errors[1, 7] = 1.0
    floor = profile([values], [errors]).floor(values, errors)
    for step, index, wrong in ((1, 7, False), (2, 7, True), (1, 8, True)):
        other = values.copy()
        other[1, index] += step
        assert compare_output("n", "p", values, other, allow(values, floor)).passed is not wrong


def test_whole_steps_all_over_are_no_rounding_at_random_values():
    values = np.random.default_rng(0).integers(0, 9, (4, 500))
    errors = (np.random.default_rng(1).random(values.shape) < 0.4).astype(np.float32)
    assert profile([values], [errors]).floor(values, errors).largest == 0.0
    assert profile([values], [errors]).floor(values, errors, random=False).largest > 0.0


@pytest.mark.parametrize(("step", "allowed"), [(1.0, True), (2.0, False)])
def test_a_fourth_of_all_may_be_off_by_one_step_where_that_was_measured(step, allowed):
    values = np.random.default_rng(0).integers(0, 9, (4, 500))
    errors = step * (np.random.default_rng(1).random(values.shape) < 0.25).astype(np.float32)
    floor = profile([values], [errors]).floor(values, errors)
    other = np.where(errors > 0, values + int(step), values)
    assert compare_output("n", "p", values, other, allow(values, floor)).passed is allowed
    other[np.unravel_index(np.argmin(errors), errors.shape)] += 1
    assert not compare_output("n", "p", values, other, allow(values, floor)).passed


def test_an_element_that_was_exact_by_chance_is_held_to_its_column():
    values = normal(0, 4, 6, 250).astype(np.float32)
    errors = noisy(values, 1)
    errors[0, 0, 0] = 0.0
    floor = profile([values], [errors]).floor(values, errors)
    other = values.copy()
    other[0, 0, 0] += 3e-7
    assert not differs(floor, values, other)


def test_chaos_is_named_and_allows_nothing_at_random_values():
    values = normal(0, 4, 6, 250).astype(np.float32)
    errors = np.abs(normal(1, 4, 6, 250)).astype(np.float32)
    floor = profile([values], [errors]).floor(values, errors)
    assert floor.chaotic
    assert TYPICAL * np.median(floor.error) > 1.0 or differs(floor, values, values + 0.5)
    result = compare_output("y", "p", values, values * -1, allow(values, floor))
    assert "own noise is large" in result.reason


def test_columns_that_are_mostly_cut_off_are_held_to_the_others():
    values = np.maximum(normal(0, 4, 6, 250) - np.array([0, 0, 0, 0, 0, 4.0])[None, :, None], 0).astype(np.float32)
    errors = np.where(values > 0, noisy(values, 1), 0).astype(np.float32)
    floor = profile([values], [errors]).floor(values, errors)
    other = values.copy()
    other[0, 5, 3] = 2e-7
    assert not differs(floor, values, other)


def test_what_was_measured_at_some_points_is_carried_to_others():
    values = [normal(i, 2, 6, 50).astype(np.float32) for i in range(4)]
    errors = [{"y": noisy(v, 9)} if i < 2 else {} for i, v in enumerate(values)]
    floors, _ = noise_floors([{"y": v} for v in values], errors, [True] * 4)
    assert floors[3]["y"].largest == pytest.approx(floors[0]["y"].largest, rel=1.0)


def test_a_column_that_is_cut_off_is_as_far_off_as_its_neighbours():
    """A ReLU before a mean leaves small numbers of sums that were not small."""
    values = [np.abs(normal(i, 4, 100)).astype(np.float32) for i in range(5)]
    errors = [np.abs(noisy(v, 7)) for v in values]
    for index, (value, error) in enumerate(zip(values, errors, strict=True)):
        value[:, 3] *= 0.01
        error[:, 3] *= 0.01
        value[index % 4, 3] = error[index % 4, 3] = 0.0
    floor = profile(values, errors).floor(values[0], errors[0])
    by_column = np.broadcast_to(floor.error, values[0].shape).max(axis=0)
    assert by_column[3] >= 0.99 * np.median(by_column)


def test_magnitudes_leave_out_fillings_and_zeros():
    rows = np.concatenate([normal(0, 3, 200), np.full((3, 200), -1e9), np.zeros((3, 100))], 1)
    np.testing.assert_allclose(magnitudes(rows), 1.0, rtol=0.2)
    assert magnitudes(np.zeros((2, 5))).tolist() == [0.0, 0.0]


def test_typical_errors_leave_out_rare_flips():
    errors = np.abs(normal(0, 2, 1000)) * 1e-7
    errors[0, :20] = 0.7
    assert typical_errors(errors, np.ones(2)).max() < 3e-7


def test_one_point_at_which_everything_flips_loosens_itself_only():
    values = [normal(i, 2, 6, 50).astype(np.float32) for i in range(6)]
    errors = [{"y": noisy(v, 9)} for v in values]
    errors[5] = {"y": np.full(values[5].shape, 1e-3, np.float32)}
    floors, _ = noise_floors([{"y": v} for v in values], errors, [True] * 6)
    assert floors[0]["y"].largest < 1e-6
    assert floors[5]["y"].largest >= 1e-3


def test_a_floor_beside_the_largest_numbers_is_finite():
    values = np.full((2, 3, 50), 3.4e38, np.float32)
    values[0, 0, 0] = np.inf
    errors = np.full(values.shape, 3.4e38, np.float32)
    floor = profile([normal(0, 2, 3, 50).astype(np.float32)], [None]).floor(values, errors, random=False)
    assert np.isfinite(floor.error).all()
    assert np.isfinite(floor.scale).all()


def test_moved_infinities_stay():
    x = np.asarray([1.0, np.inf, -np.inf, np.nan, 0.0], np.float32)
    result = moved({"x": x}, 0, 1e-30)["x"]
    np.testing.assert_array_equal(result[1:4], x[1:4])
    assert abs(result[0] - 1.0) < 2e-7
    assert result[4] != 0.0


def scores(seed):
    """Sigmoids of logits with an absolute error, as in a detector: their values span six magnitudes."""
    logits = np.random.default_rng(0).normal(-11, 3, (2, 600, 4))
    noise = np.random.default_rng(seed).normal(0, 2e-6, logits.shape)
    return (1 / (1 + np.exp(-logits - noise))).astype(np.float32), 1 / (1 + np.exp(-logits))


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_few_large_scores_are_held_to_their_own_digits(seed):
    want, exact = scores(99)
    error = np.abs(want - exact).astype(np.float32)
    floor = profile([want] * 3, [error] * 3).floor(want, error)
    assert not differs(floor, want, scores(seed)[0])
    wrong = want.copy()
    largest = np.unravel_index(want.argmax(), want.shape)
    wrong[largest] *= 1.0005
    assert differs(floor, want, wrong)
    smallest = np.unravel_index(want.argmin(), want.shape)
    wrong = want.copy()
    wrong[smallest] += 2e-6
    assert differs(floor, want, wrong)


def test_large_elements_of_a_usual_column_are_held_to_the_column():
    want = normal(0, 2, 600, 4).astype(np.float32)
    error = np.full(want.shape, 1e-6, np.float32)
    floor = profile([want] * 3, [error] * 3).floor(want, error)
    assert floor.error.max() == pytest.approx(1e-6, rel=1e-3)


def test_columns_of_unlike_elements_do_not_count():
    """Four coordinates and eighty scores by anchor, at a fixed number of anchors."""
    draw = np.random.default_rng(0)
    scale = np.array([100.0] * 4 + [1e-4] * 80)[None, :, None]
    want = (scale * draw.uniform(-1.5, 1.5, (2, 84, 50))).astype(np.float32)
    errors = [np.abs(scale * draw.normal(0, 1e-6, want.shape)).astype(np.float32) for _ in range(3)]
    floor = profile([want] * 3, errors).floor(want)
    for seed in range(3):
        other = want + scale * np.random.default_rng(seed + 1).normal(0, 1e-6, want.shape)
        assert not differs(floor, want, other.astype(np.float32))
    wrong = want.copy()
    wrong[0, 40, 7] *= 1.001
    assert differs(floor, want, wrong)


def test_a_number_that_cancels_is_as_noisy_as_the_rest_of_an_output_that_is_large_at_a_point():
    generator = np.random.default_rng(0)
    values = [generator.standard_normal((4, 50)).astype(np.float32) for _ in range(6)]
    noise = profile(values, [np.abs(v) * 0 + 1e-7 for v in values])
    bright = 60 * generator.standard_normal((2, 50)).astype(np.float32)
    bright[:, 7] = 1e-3
    floor = noise.floor(bright, random=False)
    assert floor.scale[:, 7].min() > 20
    assert floor.error[:, 7].min() > 20 * np.median(noise.floor(values[0]).error)


def test_a_column_that_alone_is_small_stays_small_where_the_output_has_its_usual_size():
    generator = np.random.default_rng(0)
    values = [generator.standard_normal((4, 50)).astype(np.float32) * ([1.0] * 49 + [1e-3]) for _ in range(6)]
    noise = profile([v.astype(np.float32) for v in values], [(np.abs(v) * 1e-7).astype(np.float32) for v in values])
    assert noise.floor(values[0].astype(np.float32)).scale[:, 49].max() < 0.01


def test_a_sample_that_is_larger_than_its_neighbours_is_as_much_further_off():
    points = [normal(seed, 8, 1000) for seed in range(3)]
    outputs = profile(points, [None] * 3)
    batch = normal(4, 8, 1000)
    batch[7] *= 3.0
    scale = outputs.floor(batch).scale
    assert scale.shape == (8, 1000)
    # Not 3: the large sample is in the magnitudes of its columns already.
    assert 1.5 < np.median(scale[7] / scale[0]) < 3.0
    assert not np.ptp(outputs.floor(points[0]).scale, axis=0).any()


def test_one_large_element_makes_no_sample_large():
    outputs = profile([normal(seed, 8, 1000) for seed in range(3)], [None] * 3)
    batch = normal(4, 8, 1000)
    batch[7, 3] = 1e6
    growth = outputs.floor(batch).scale / outputs.floor(normal(4, 8, 1000)).scale
    assert np.median(growth[7]) <= 1.1
