"""Shape with start and end for TensorRT 8.6."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.newer.operators.shape_window import RULE

CASES = [
    Case(
        "from the third axis",
        "s = Shape<start=2>(x) f = Cast<to=1>(s) y = ReduceSum<keepdims=1>(f)",
        outputs="float[a] y",
        present=("Slice",),
        target="tensorrt==8.6",
    ),
    Case(
        "negative end",
        "s = Shape<start=-3,end=-1>(x) y = Cast<to=1>(s)",
        outputs="float[2] y",
        present=("Slice",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case("the whole shape", "s = Shape(x) y = Cast<to=1>(s)", outputs="float[4] y", target="tensorrt==8.6"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
