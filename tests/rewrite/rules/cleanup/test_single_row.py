# ruff: noqa: E501 - the text of a model stands on one line
"""The one row of an axis."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.cleanup.single_row import RULE

ONE = {"inputs": "float[1,C,H,W] x", "outputs": "float[a,b,c] y", "sizes": (
    {"C": 3, "H": 4, "W": 6}, {"C": 1, "H": 5, "W": 3}, {"C": 4, "H": 7, "W": 2},
)}  # fmt: skip
CASES = [
    Case("the first axis", "y = Gather(x, i)", constants="int64 i = {0}", absent=("Gather",), **ONE),
    Case("from the back", "y = Gather<axis=-4>(x, i)", constants="int64 i = {-1}", absent=("Gather",), **ONE),
    Case("for 8.6", "y = Gather(x, i)", constants="int64 i = {0}", absent=("Gather",), target="tensorrt==8.6", **ONE),
]
NEAR_MISSES = [
    Case("an axis that moves", "y = Gather<axis=1>(x, i)", constants="int64 i = {0}", **ONE),
    Case("an axis of two", "y = Gather(x, i)", constants="int64 i = {0}", **{**ONE, "inputs": "float[2,C,H,W] x"}),
    Case("an axis that stays", "y = Gather(x, i)", constants="int64[1] i = {0}", **{**ONE, "outputs": "float[a,b,c,d] y"}),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
