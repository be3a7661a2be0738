"""LayerNormalization with more than one output."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.layers.layer_norm import RULE

CASES = [
    Case(
        "the mean is used",
        "n, m, i = LayerNormalization<axis=3>(x, s) y = Add(n, m)",
        "float[N,8,H,5] x",
        constants="float[5] s = {2.0,1,3,4,5}",
        absent=("LayerNormalization",),
    ),
    Case(
        "all three are outputs",
        "y, m, i = LayerNormalization<axis=-1>(x, s, b)",
        "float[N,8,H,5] x",
        "float[a,b,c,d] y, float[a,b,c,e] m, float[a,b,c,e] i",
        constants="float[5] s = {2.0,1,3,4,5}, float[5] b = {1,1,0,2,3}",
        absent=("LayerNormalization",),
    ),
]
NEAR_MISSES = [
    Case(
        "one output",
        "y = LayerNormalization<axis=-1>(x, s)",
        "float[N,8,H,5] x",
        constants="float[5] s = {2.0,1,3,4,5}",
    ),
    Case(
        "others unused",
        "y, m, i = LayerNormalization<axis=-1>(x, s)",
        "float[N,8,H,5] x",
        constants="float[5] s = {2.0,1,3,4,5}",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
