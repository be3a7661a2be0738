"""What Python computes of a size in FP64 as whole numbers, for every size of a range."""

from __future__ import annotations

import math

import pytest

from trtconv.core.shape_space.space import DimRange
from trtconv.export.sizes.exact_sizes import MOST_EXCEPTIONS, fit

FUNCTIONS = [
    ("seven tenths", lambda n: int(n * 0.7)),
    ("29 hundredths", lambda n: int(n * 0.29)),
    ("more by a tenth", lambda n: math.ceil(n * 1.1)),
    ("over 2.4", lambda n: math.ceil(n / 2.4)),
    ("half up", lambda n: int(n * 0.35 + 0.5)),
    ("other rate", lambda n: int(n * 16000 / 22050)),
    ("constant", lambda n: 7),
    ("falling", lambda n: int(400 - n * 0.3)),
]


def at(exact, size):
    for special, value in exact.exceptions:
        if size == special:
            return value
    whole = exact.factor * size + exact.shift
    assert whole >= 0, "ONNX's division of negative numbers rounds up"
    return whole // exact.divisor


@pytest.mark.parametrize(("name", "function"), FUNCTIONS, ids=[f[0] for f in FUNCTIONS])
@pytest.mark.parametrize("rng", [DimRange(5, 60, 140), DimRange(1, 300, 700), DimRange(64, 128, 640, 32)])
def test_the_formula_holds_at_every_size(name, function, rng):
    exact = fit("v", "H", rng, [function(n) for n in rng.values()])
    assert exact is not None
    assert len(exact.exceptions) <= MOST_EXCEPTIONS
    assert all(at(exact, n) == function(n) for n in rng.values())


def test_one_exception_is_the_rounding_of_the_product():
    exact = fit("v", "W", DimRange(11, 30, 60), [math.ceil(n * 1.1) for n in range(11, 61)])
    assert exact.exceptions == ((50, 56),)
    assert at(exact, 50) == 56


def test_what_is_no_line_is_left():
    assert fit("v", "H", DimRange(1, 50, 200), [n * n // 3 for n in range(1, 201)]) is None
    assert fit("v", "H", DimRange(1, 50, 200), [n - 100 for n in range(1, 201)]) is None
    assert fit("v", "H", DimRange(7, 7, 7), [3]) is None
