"""Squeeze without axes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.squeeze_axes import RULE

CASES = [
    Case("one axis", "y = Squeeze(x)", "float[5,1,7,3] x", "float[a,b,c] y"),
    Case("two axes, opset 11", "y = Squeeze(x)", "float[5,1,7,1] x", "float[a,b] y", opset=11),
]
NEAR_MISSES = [
    Case("a size out of a shape", "s = Shape<start=2,end=3>(x) q = Squeeze(s) y = Cast<to=1>(q)", outputs="float y"),
    Case("a dim that moves", "y = Squeeze(x)", "float[N,1,7,3] x", "float[a,b,c] y", skip="depends"),
    Case("axes given", "y = Squeeze(x, a)", "float[N,1,7,3] x", "float[a,b,c] y", constants="int64[1] a = {1}"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
