"""Each way of calibrating does what it is for, against a search over all thresholds."""

import numpy as np
import pytest

from trtconv.core.errors import InvalidRequestError
from trtconv.core.precision import FP8, INT8
from trtconv.rewrite.precision.qdq.thresholds import BINS, Histogram, require_method, threshold

VALUES = np.abs(np.concatenate([np.random.default_rng(0).normal(size=200_000), [60.0]]))
HISTOGRAM = Histogram(np.histogram(VALUES, BINS, (0, VALUES.max()))[0], float(VALUES.max()))


def loss(cut):
    step = cut / 127
    return np.mean((VALUES - np.clip(np.rint(VALUES / step), 0, 127) * step) ** 2)


def test_max_covers_the_outlier_and_the_others_cut_it_off():
    assert threshold(HISTOGRAM, "max") == 60.0
    assert 3.0 < threshold(HISTOGRAM, "percentile") < 5.0
    assert 2.0 < threshold(HISTOGRAM, "entropy") < 10.0


def test_mse_is_the_best_cut_there_is():
    cut = threshold(HISTOGRAM, "mse")
    best = min(np.linspace(0.5, 60, 240), key=loss)
    assert loss(cut) < 1.1 * loss(best) < 0.6 * loss(60.0)


def test_fp8_has_its_own_best_cut():
    # E4M3 keeps its relative error over 17 octaves, so that cutting an outlier off gains next to nothing.
    assert threshold(HISTOGRAM, "mse", FP8) > threshold(HISTOGRAM, "mse", INT8)


@pytest.mark.parametrize("method", ["max", "percentile", "entropy", "mse"])
def test_a_value_that_is_always_zero_has_no_range(method):
    assert threshold(Histogram(np.zeros(BINS, np.int64), 0.0), method) == 0.0


@pytest.mark.parametrize(("method", "precision"), [("entropie", INT8), ("entropy", FP8)])
def test_a_method_that_a_precision_has_not_is_refused(method, precision):
    with pytest.raises(InvalidRequestError, match="entropy"):
        require_method(method, precision)
