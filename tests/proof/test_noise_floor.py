import numpy as np
import pytest

from trtconv.core.shape_space.space import ShapeSpace
from trtconv.core.tensors import parse_tensor
from trtconv.core.tolerance import DEFAULT_TOLERANCE
from trtconv.proof.comparison import ROUNDING_FACTOR, compare_output
from trtconv.proof.noise_floor import SPREAD, combined, largest_of, rounding_allowance
from trtconv.proof.points import SamplePoint
from trtconv.proof.reference import ReferenceInfo, ReferenceSample, read_samples, write_reference

CHANCE = np.random.default_rng(0)
ERRORS = np.abs(CHANCE.standard_normal((4, 250))) * 1e-3


def flipped():
    errors = ERRORS.copy()
    errors[1, 7] = 1.0
    return errors


@pytest.mark.parametrize("draw", ["normal", "product"])
def test_errors_of_one_kind_are_one_number(draw):
    errors = np.abs(CHANCE.standard_normal(100_000))
    errors = errors * np.abs(CHANCE.standard_normal(100_000)) if draw == "product" else errors
    assert rounding_allowance(errors) == errors.max()


def test_one_flip_loosens_its_own_element_only():
    allowed = rounding_allowance(flipped())
    assert allowed.shape == (4, 250)
    assert allowed[1, 7] == 1.0
    others = np.delete(allowed.reshape(-1), 257)
    assert others.max() == pytest.approx(SPREAD * np.quantile(flipped(), 0.9))
    assert others.max() < 0.02


def test_a_wrong_element_beside_a_flip_is_found_and_the_flip_is_not():
    want = np.zeros((4, 250))
    allowed = rounding_allowance(flipped())
    at_the_flip, beside = want.copy(), want.copy()
    at_the_flip[1, 7] = ROUNDING_FACTOR * 0.9
    beside[2, 100] = 0.9
    assert compare_output("y", "large", want, at_the_flip, DEFAULT_TOLERANCE, allowed).passed
    assert not compare_output("y", "large", want, beside, DEFAULT_TOLERANCE, allowed).passed
    assert compare_output("y", "large", want, beside, DEFAULT_TOLERANCE, largest_of(allowed)).passed, "as it once was"


def test_another_evaluation_that_rounds_alike_is_no_alarm():
    want, allowed = np.zeros((4, 250)), rounding_allowance(flipped())
    for seed in range(200):
        again = np.random.default_rng(seed).standard_normal((4, 250)) * 1e-3
        assert compare_output("y", "large", want, again, DEFAULT_TOLERANCE, allowed).passed


def test_where_nearly_all_are_exact_only_what_was_measured_is_allowed():
    errors = np.zeros(1000)
    errors[:20] = 1.0
    allowed = rounding_allowance(errors)
    assert np.count_nonzero(allowed) == 20


def test_what_every_tolerance_takes_needs_no_array():
    errors = np.zeros(1000)
    errors[0] = 1e-6
    assert rounding_allowance(errors) == 1e-6
    assert rounding_allowance(np.zeros((0, 3))) == 0.0


def test_allowances_are_combined_element_by_element():
    assert combined(1.0, 2.0) == 2.0
    np.testing.assert_array_equal(combined(np.array([0.0, 3.0]), 1.0), [1.0, 3.0])


def test_a_reference_keeps_both_kinds(tmp_path):
    point, spec = SamplePoint("large", (), "large", 0), parse_tensor("x:float32[2]")
    arrays = {"a": np.zeros((4, 250), np.float32), "b": np.zeros(2, np.float32)}
    rounding = {"a": rounding_allowance(flipped()), "b": 0.25}
    sample = ReferenceSample(point, {"x": np.zeros(2, np.float32)}, arrays, rounding)
    path = tmp_path / "m.reference.safetensors"
    write_reference(path, ReferenceInfo((point,), (spec,), ("a", "b"), ShapeSpace()), [sample])
    (back,) = read_samples(path)
    np.testing.assert_array_equal(back.rounding["a"], rounding["a"])
    assert back.rounding["b"] == 0.25
    assert set(back.outputs) == {"a", "b"}
