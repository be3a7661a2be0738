"""Parts that never mix, whatever the order and however many copies; data that shows nothing is refused."""

import numpy as np
import pytest

from trtconv.core.data.samples import Sample
from trtconv.core.data.split import split
from trtconv.core.errors import InvalidRequestError

RNG = np.random.default_rng(1)


def samples(count, seed=0):
    rng = np.random.default_rng(seed)
    return [Sample({"x": rng.normal(size=5).astype(np.float32)}, index) for index in range(count)]


def labels(part):
    return {s.label for s in part}


def test_the_same_data_in_another_order_gives_the_same_parts():
    data = samples(200)
    first, second = split(data), split([data[i] for i in RNG.permutation(200)])
    assert [labels(p) for p in (first.calibration, first.search, first.judging)] == [
        labels(p) for p in (second.calibration, second.search, second.judging)
    ]
    assert first.sizes() == {"calibration": 50, "search": 60, "judging": 90}


def test_copies_of_a_sample_never_fall_into_two_parts():
    data = samples(100)
    copies = [Sample(dict(s.inputs), s.label) for s in data for _ in range(3)]
    parts = split(copies)
    assert parts.duplicates == 200
    three = [labels(parts.calibration), labels(parts.search), labels(parts.judging)]
    assert sum(map(len, three)) == len(set.union(*three)) == 100
    assert parts == split(data + copies).__class__(parts.calibration, parts.search, parts.judging, 200)


@pytest.mark.parametrize("count", [0, 31])
def test_too_few_samples_are_refused(count):
    with pytest.raises(InvalidRequestError, match="too few"):
        split(samples(count))


def test_copies_do_not_count():
    with pytest.raises(InvalidRequestError, match="64 samples, 48 of them copies, are too few"):
        split(samples(16) * 4)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([np.full(5, float(i), np.float32) for i in range(64)], "constant"),
        ([np.float32([np.nan, i, 0]) for i in range(64)], "NaN"),
    ],
)
def test_data_that_shows_nothing_is_refused(inputs, message):
    with pytest.raises(InvalidRequestError, match=message):
        split([Sample({"x": array}) for array in inputs])
