import numpy as np
import pytest

from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import ENGINE_SPREAD, Arithmetic, allow, resolve_tolerance
from trtconv.proof.comparison import compare_output
from trtconv.proof.noise.noise_floor import NoiseFloor, profile

VALUES = np.random.default_rng(0).standard_normal((4, 6, 100)).astype(np.float32)
ERRORS = np.abs(np.random.default_rng(1).standard_normal((4, 6, 100)) * 1e-7).astype(np.float32)
FLOOR = profile([VALUES], [ERRORS]).floor(VALUES, ERRORS)


def median(tolerance=None, arithmetic=None):
    return float(np.median(allow(VALUES, FLOOR, tolerance, arithmetic or Arithmetic()).limit))


def test_the_default_of_fp32_is_near_a_millionth_of_the_scale():
    assert 1e-6 < median() < 1e-5


def test_a_narrower_type_adds_its_roundings():
    assert 5e-3 < median(arithmetic=Arithmetic("fp16")) < 5e-2
    assert median(arithmetic=Arithmetic("bf16")) == pytest.approx(8 * median(arithmetic=Arithmetic("fp16")), rel=0.2)
    assert median(arithmetic=Arithmetic("tf32", engine=True)) >= median(arithmetic=Arithmetic("fp16"))


def test_an_engine_may_be_further_off_than_onnx_runtime():
    assert median(arithmetic=Arithmetic(engine=True)) == pytest.approx(ENGINE_SPREAD * median(), rel=1e-3)


def test_a_cosine_for_one_output_leaves_the_rest_to_the_precision():
    """`[check.outputs.boxes] cosine=0.99` once gave an fp16 check a tolerance of 1e-4."""
    fp16 = Arithmetic("fp16", engine=True)
    boxes = resolve_tolerance("boxes", None, {"boxes": Tolerance(cosine=0.99)})
    assert boxes == Tolerance(cosine=0.99)
    assert median(boxes, fp16) == median(None, fp16)
    assert allow(VALUES, FLOOR, boxes, fp16).cosine == 0.99


def test_what_is_named_for_an_output_is_laid_over_what_is_named_for_all():
    everywhere, own = Tolerance(rtol=1e-2, atol=1e-3, why="all"), {"boxes": Tolerance(atol=0.5, why="boxes")}
    assert resolve_tolerance("boxes", everywhere, own) == Tolerance(rtol=1e-2, atol=0.5, why="boxes")
    assert resolve_tolerance("other", everywhere, own) == everywhere
    assert resolve_tolerance("other") == Tolerance()


def test_a_named_limit_holds_in_place_of_the_default():
    limit = allow(VALUES, FLOOR, Tolerance(rtol=0.0, atol=0.25), Arithmetic("fp16")).limit
    np.testing.assert_allclose(limit, 0.25, rtol=0.1)
    half = allow(VALUES, FLOOR, Tolerance(rtol=0.0), Arithmetic("fp16")).limit
    assert np.ptp(half / np.median(half)) < 1.0


def test_the_limits_are_told_in_words():
    assert str(Tolerance()) == "the noise floor"
    assert str(Tolerance(rtol=0.01)) == "rtol 0.01, atol by the noise floor"


def test_integers_are_exact():
    ids = np.arange(12).reshape(3, 4)
    assert not np.any(allow(ids).limit)
    assert np.all(allow(ids, tolerance=Tolerance(rtol=0.0, atol=1.0)).limit == 1.0)


def logits(scale, noise):
    """What half precision is allowed in eight columns, of which the last has this magnitude and noise."""
    scales, errors = np.full((1, 8), 0.4, np.float32), np.full((1, 8), 1e-6, np.float32)
    scales[0, -1], errors[0, -1] = scale, noise
    floor = NoiseFloor(errors, scales, np.zeros((1, 8), bool))
    return allow(np.zeros((1, 8), np.float32), floor, None, Arithmetic("fp16")).limit[0]


def test_a_column_that_cancels_is_as_far_off_in_half_precision_as_its_neighbours():
    limits = logits(scale=0.02, noise=1e-6)
    assert limits[-1] == pytest.approx(limits[0], rel=0.2)


@pytest.mark.parametrize("noise", [1e-9, 2e-5])
def test_a_column_of_another_kind_is_held_to_its_own_magnitude(noise):
    assert logits(scale=0.02, noise=noise)[-1] <= 0.07 * 0.02


def test_the_neighbours_of_a_number_that_cancels_are_those_of_its_own_sample():
    scales = np.full((2, 40), 0.4, np.float32)
    scales[1] *= 3.0
    scales[:, -1] = 0.02
    floor = NoiseFloor(np.full((2, 40), 1e-5, np.float32), scales, np.zeros((2, 40), bool))
    limits = allow(np.zeros((2, 40), np.float32), floor, None, Arithmetic("fp16")).limit[:, -1]
    assert limits[1] == pytest.approx(3.0 * limits[0], rel=0.2)


def uneven_noise():
    """Eight channels of noise 1e-7, of which one is of another kind and one has an element with 30 times as much."""
    errors, scale = np.full((4, 8, 50), 1e-7, np.float32), np.ones((4, 8, 1), np.float32)
    errors[:, 0], errors[2, 1, 7] = 1e-9, 3e-6
    return allow(
        np.zeros((4, 8, 50), np.float32),
        NoiseFloor(errors, scale, np.zeros((1, 8, 1), bool)),
        None,
        Arithmetic("fp16"),
    )


def test_outliers_in_half_precision_are_as_far_off_as_the_noisiest_element_was_in_fp32():
    allowed = uneven_noise()
    assert allowed.limit[0, 3, 0] == pytest.approx(allowed.usual[2, 1, 7], rel=0.01)
    assert allowed.limit[0, 3, 0] > 2.0 * allowed.usual[0, 3, 0]
    assert allowed.limit[0, 0, 0] == allowed.usual[0, 0, 0]


@pytest.mark.parametrize(("elements", "passes"), [(1, True), (3, False)])
def test_all_but_a_few_elements_keep_the_usual_limit(elements, passes):
    allowed = uneven_noise()
    actual = np.zeros((4, 8, 50), np.float32)
    actual[0, 3, :elements] = 0.9 * allowed.limit[0, 3, 0]
    assert compare_output("y", "opt", np.zeros_like(actual), actual, allowed).passed is passes


@pytest.mark.parametrize("step", range(1, 24))
def test_a_step_of_whole_numbers_that_was_measured_is_allowed_whole(step):
    """A twelfth of the step lies in the floor as float32, and twelve of these may come out a hair under it."""
    values = np.random.default_rng(0).integers(0, 90, (4, 1, 40)).astype(np.float32)
    errors = np.zeros((4, 1, 40), np.float32)
    errors[1, 0, 7] = step
    output = profile(list(values), list(errors))
    floor = output.floor(values[1], errors[1])
    limit = np.broadcast_to(allow(values[1], floor).limit, (1, 40))
    assert floor.exact.all()
    assert limit[0, 7] == step
    assert limit[0, :7].max() == 0.0


def test_what_was_rounded_to_bfloat16_may_be_one_more_of_its_units_off():
    """FP32 outputs of a network in bfloat16: an error that is allowed before the rounding may fall to the next unit."""
    values = (VALUES.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    noise = np.full(values.shape, 1e-3, np.float32)
    floor = NoiseFloor(noise, np.ones_like(noise), np.zeros(values.shape, bool))
    added = allow(values, floor).limit - allow(np.nextafter(values, np.float32(np.inf)), floor).limit
    unit = np.exp2(np.floor(np.log2(np.abs(values))) - 7)
    allowed = unit <= 12 * 1e-3
    assert allowed.any()
    assert not allowed.all()
    assert added[allowed] == pytest.approx(unit[allowed], rel=1e-3)
    assert added[~allowed] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int64, np.bool_])
def test_a_number_alone_has_an_allowance(dtype):
    assert np.shape(allow(np.asarray(1, dtype)).limit) == ()
