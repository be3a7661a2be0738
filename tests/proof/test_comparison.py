import dataclasses

import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allow
from trtconv.proof.comparison import (
    compare_bits,
    compare_output,
    compare_outputs,
    describe_failure,
    first_failure,
    shows_nothing,
)

TIGHT = Tolerance(rtol=1e-4, atol=1e-4)


def compare(expected, actual, tolerance=TIGHT):
    want = np.asarray(expected)
    return compare_output("y", "opt", want, np.asarray(actual), allow(want, tolerance=tolerance))


@pytest.mark.parametrize(
    "limits", [{"rtol": float("nan")}, {"rtol": -1.0}, {"atol": float("inf")}, {"cosine": 2.0}, {"mismatched": -0.1}]
)
def test_a_tolerance_that_is_no_limit_is_refused(limits):
    with pytest.raises(
        InvalidRequestError, match=f"^tolerance {next(iter(limits))} must be .*, got {next(iter(limits.values()))}"
    ):
        Tolerance(**limits)


def test_equal_arrays_pass_with_no_error():
    result = compare(np.arange(6.0).reshape(2, 3), np.arange(6.0).reshape(2, 3))
    assert result.passed
    assert (result.max_abs, result.max_rel, result.mismatched) == (0.0, 0.0, 0.0)


def test_one_wrong_element_is_found_and_placed():
    want = np.ones((2, 3, 4), np.float32)
    actual = want.copy()
    actual[1, 2, 3] = 1.5
    result = compare(want, actual)
    assert not result.passed
    assert result.at == (1, 2, 3)
    assert result.mismatched == 1 / 24
    assert "got 1.5" in describe_failure(result)


def test_nan_agrees_only_with_nan():
    assert compare([np.nan, 1.0], [np.nan, 1.0]).passed
    assert not compare([0.0, 1.0], [np.nan, 1.0]).passed
    assert not compare([np.nan, 1.0], [0.0, 1.0]).passed


def test_infinities_agree_by_sign():
    assert compare([np.inf, -np.inf], [np.inf, -np.inf]).passed
    assert not compare([np.inf], [-np.inf]).passed
    assert not compare([np.inf], [1e30]).passed


def test_a_shape_that_differs_fails_without_numbers():
    result = compare(np.zeros((1, 7, 7)), np.zeros((1, 5, 5)))
    assert not result.passed
    assert result.max_abs is None
    assert "shape [1, 5, 5], expected [1, 7, 7]" in describe_failure(result)


def test_a_float_that_became_an_integer_fails():
    assert not compare(np.zeros(3, np.float32), np.zeros(3, np.int64)).passed
    assert compare(np.zeros(3, np.int64), np.zeros(3, np.int32)).passed
    assert compare(np.zeros(3, np.float32), np.zeros(3, np.float16)).passed


def test_a_cosine_limit_adds_to_the_tolerance():
    want, actual = np.array([1.0, 0.0]), np.array([0.0, 1.0])
    assert not compare(want, actual, Tolerance(rtol=10, atol=10, cosine=0.99)).passed
    assert compare(want, actual, Tolerance(rtol=10, atol=10)).passed


def test_empty_arrays_agree():
    assert compare(np.zeros((0, 4)), np.zeros((0, 4))).passed


def test_a_missing_output_fails_and_an_extra_one_does_not():
    results = compare_outputs("min", {"a": np.ones(2), "b": np.ones(2)}, {"a": np.ones(2), "c": np.ones(2)})
    failure = first_failure(results)
    assert failure is not None
    assert failure.output == "b"
    assert len(results) == 2


def test_json_has_no_bare_infinity():
    data = compare([1.0], [np.inf]).as_dict()
    assert (data["max_abs"], data["max_share"]) == ("inf", "inf")


def test_elements_that_cancel_are_held_to_their_neighbours():
    want = (np.random.default_rng(0).standard_normal(1000) * 1e6).astype(np.float32)
    want[3], actual = 0.5, want.copy()
    actual[3] = 40.0
    assert compare(want, actual, Tolerance()).passed


@pytest.mark.parametrize("filling", [-1e4, -1e9, float(np.finfo(np.float32).min)])
@pytest.mark.parametrize("share", [0.1, 0.5])
def test_fillings_of_a_mask_do_not_hide_wrong_logits(filling, share):
    chance = np.random.default_rng(0)
    logits = chance.standard_normal((4, 50)).astype(np.float32)
    masked = chance.random((4, 50)) < share
    want, actual = np.where(masked, np.float32(filling), logits), np.where(masked, np.float32(filling), logits + 0.3)
    assert not compare(want, actual.astype(np.float32), Tolerance()).passed


@pytest.mark.parametrize("value", [0.0, 0.37])
def test_outputs_that_a_constant_would_equal_prove_nothing(value):
    chance = np.random.default_rng(0)
    constant = np.full((8, 4), value, np.float32)
    varying = chance.standard_normal((8, 4)).astype(np.float32)
    outputs = {"constant": constant, "varying": varying, "ids": chance.integers(0, 4, (8, 4))}
    assert shows_nothing(compare_outputs("opt", outputs, outputs)) == ("constant",)


def test_a_scalar_that_varies_between_points_proves_something():
    results = [compare_output("loss", f"p{i}", np.float32(i + 1), np.float32(i + 1)) for i in range(2)]
    assert shows_nothing(results) == ()
    assert shows_nothing(results[:1]) == ("loss",)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "bool"])
def test_equal_bits_are_compared_as_by_element(dtype):
    values = np.linspace(-3, 4, 24).reshape(2, 3, 4).astype(dtype)
    quick, full = compare_bits("y", "p", values, values.copy()), compare_output("y", "p", values, values.copy())
    # What would be allowed is not worked out.
    assert quick == dataclasses.replace(full, allowed=None)


def test_other_bits_are_left_to_the_comparison_by_element():
    zeros = np.zeros(3, np.float32)
    for other in (-zeros, zeros.astype(np.float64), np.zeros((3, 1), np.float32), zeros + np.float32(1e-45)):
        assert compare_bits("y", "p", zeros, other) is None
    nothing = np.zeros((0, 2), np.float32)
    assert compare_bits("y", "p", nothing, nothing) is None
    odd = np.array([np.nan, np.inf, 1.0, -2.0], np.float32)
    assert compare_bits("y", "p", odd, odd.copy()).expected_range == (-2.0, 1.0)
