
"""What a condition keeps."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.selection.compress import RULE

X = {"inputs": "float[N,H] x, bool[H] c", "outputs": "float[a,b] y", "absent": ("Compress",), "target": "tensorrt==8.6"}
CASES = [
    Case("rows of an axis", "y = Compress<axis=1>(x, c)", **X),
    Case("from the end", "y = Compress<axis=-1>(x, c)", **X),
    Case("a shorter condition", "y = Compress<axis=1>(x, c)", **(X | {"inputs": "float[N,H] x, bool[3] c"})),
    Case("a constant condition", "y = Compress<axis=1>(x, c)",
         **(X | {"inputs": "float[N,3] x", "constants": "bool[3] c = {1, 0, 1}", "absent": ("Compress", "NonZero")})),
    Case("elements", "y = Compress(x, c)", **(X | {"outputs": "float[a] y"})),
]  # fmt: skip
NEAR_MISSES = [Case("a target without NonZero", "y = Compress<axis=1>(x, c)", **(X | {"target": "tensorrt-rtx"}))]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
