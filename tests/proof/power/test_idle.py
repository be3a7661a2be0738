"""Outputs of which a comparison shows nothing."""

import numpy as np
import pytest

from trtconv.core.tolerance import Tolerance
from trtconv.proof.allowance import allowances
from trtconv.proof.comparison import compare_outputs
from trtconv.proof.points import SamplePoint
from trtconv.proof.power.idle import IdleOutputs
from trtconv.proof.reference import ReferenceSample

LIMITS = Tolerance(1e-4, 1e-4)
RANDOM = np.random.default_rng(0)


def idle(make, dtype=np.float32, points=3):
    watch = IdleOutputs(lambda s, o: compare_outputs(str(s.point), s.outputs, o, allowances(s, LIMITS)))
    for index in range(points):
        point = SamplePoint(f"p{index}", (("N", 2 + index),))
        watch.offer(ReferenceSample(point, {}, {"y": np.asarray(make(2 + index), dtype)}))
    return watch.idle()


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda n: np.zeros((n, 3)), "was 0 at every point"),
        (lambda n: 1e-6 * RANDOM.standard_normal((n, 3)), "zeros would equal"),
        (lambda n: np.full((n, 3), np.nan), "was NaN or infinite at every point"),
        (lambda n: np.full((n, 3), np.inf), "was NaN or infinite at every point"),
        (lambda n: np.full((n, 3), 0.5), "a constant in place of output 'y'"),
        (lambda n: np.tile([1.0, 2.0, 3.0], (n, 1)), "a constant in place of output 'y'"),
        (lambda n: np.broadcast_to(np.arange(3.0).reshape(1, 3, 1), (n, 3, n)), "a constant in place of output 'y'"),
    ],
    ids=["zero", "far under what is allowed", "NaN", "infinite", "constant", "bias alone", "channels alone"],
)
def test_an_output_that_a_constant_equals_shows_nothing(make, words):
    (result,) = idle(make)
    assert words in result.describe()


@pytest.mark.parametrize(
    "make",
    [lambda n: RANDOM.standard_normal((n, 3)), lambda n: np.arange(3.0 * n).reshape(n, 3), lambda n: np.full((n,), n)],
    ids=["random", "grid", "size"],
)
def test_an_output_that_varies_shows_something(make):
    assert idle(make) == ()


def test_classes_that_are_all_the_same_show_nothing():
    assert idle(lambda n: np.full((n,), 7), np.int64)
    assert not idle(lambda n: np.arange(n), np.int64)


def test_one_point_or_no_element_says_nothing():
    assert idle(lambda n: np.zeros((n, 3)), points=1) == ()
    assert idle(lambda n: np.zeros((0, 3))) == ()
