"""Identity matrices of moving size."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.eye_like import RULE

X = {"inputs": "float[H,W] x", "absent": ("EyeLike",)}
CASES = [
    Case("plain", "y = EyeLike(x)", outputs="float[a,b] y", **X),
    Case("above the diagonal", "y = EyeLike<k=2>(x)", outputs="float[a,b] y", **X),
    Case("below it, integers", "y = EyeLike<k=-3,dtype=7>(x)", outputs="int64[a,b] y", **X),
    Case("a square of integers", "y = EyeLike(i)", "int64[H,H] i", "int64[a,b] y", absent=("EyeLike",)),
    Case("8.6", "y = EyeLike(x)", outputs="float[a,b] y", target="tensorrt==8.6", **X),
]
NEAR_MISSES = [
    Case("fixed size", "y = EyeLike(x)", "float[5,7] x", "float[a,b] y"),
    Case("bytes", "y = EyeLike<dtype=2>(x)", "float[H,W] x", "uint8[a,b] y", skip="cast"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
