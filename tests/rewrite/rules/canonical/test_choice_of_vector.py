"""ArgMax and ArgMin of a vector."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.canonical.choice_of_vector import RULE

VECTOR = {"inputs": "float[W] x", "present": ("Unsqueeze", "Squeeze")}
CASES = [
    Case("a scalar", "y = ArgMax<axis=0, keepdims=0>(x)", outputs="int64 y", **VECTOR),
    Case("the axis kept", "y = ArgMin<axis=0>(x)", outputs="int64[one] y", **VECTOR),
    Case("the last of equals", "y = ArgMax<axis=-1, select_last_index=1>(x)", outputs="int64[one] y", **VECTOR),
    Case(
        "used as an index",
        "i = ArgMax<axis=0, keepdims=0>(x) y = Gather(x, i)",
        outputs="float y",
        **VECTOR,
    ),
]
NEAR_MISSES = [
    Case("two axes", "y = ArgMax<axis=0>(x)", inputs="float[H,W] x", outputs="int64[one,b] y"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
