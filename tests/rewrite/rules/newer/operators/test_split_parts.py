"""Split with num_outputs for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.split_parts import RULE

CASES = [
    Case(
        "a dynamic axis in two",
        "p, q = Split<axis=2,num_outputs=2>(x) r = Relu(q) y = Concat<axis=2>(r, p)",
        opset=18,
        absent=("Split",),
        target="tensorrt==8.6",
    ),
    Case(
        "three uneven parts",
        "p, q, r = Split<axis=3,num_outputs=3>(x) y = Concat<axis=3>(r, q, p)",
        opset=18,
        absent=("Split",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case(
        "by sizes",
        "p, q = Split<axis=1>(x, s) y = Concat<axis=1>(q, p)",
        opset=18,
        constants="int64[2] s = {3,5}",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
