# ruff: noqa: E501 - the text of a model stands on one line
"""The order of suppressed boxes."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.selection.suppression_order import RULE

BOXES = {"outputs": "int64[a,b] y", "constants": "int64 most = {3}, float overlap = {0.4}, float least = {0.2}", "target": "tensorrt==8.6", "ranges": {"b": (0, 1), "s": (0, 1)}}
SIZES = ({"N": 2, "H": 9}, {"N": 1, "H": 1}, {"N": 3, "H": 17})
CASES = [
    Case("several classes", "y = NonMaxSuppression<center_point_box=1>(b, s, most, overlap, least)", "float[N,H,4] b, float[N,5,H] s", sizes=SIZES, **BOXES),
    Case("a moving number of classes", "y = NonMaxSuppression<center_point_box=1>(b, s, most, overlap, least)", "float[N,H,4] b, float[N,C,H] s", sizes=({"N": 2, "H": 9, "C": 3}, {"N": 1, "H": 4, "C": 1}, {"N": 3, "H": 7, "C": 2}), **BOXES),
]
NEAR_MISSES = [
    Case("one class", "y = NonMaxSuppression<center_point_box=1>(b, s, most, overlap, least)", "float[N,H,4] b, float[N,1,H] s", sizes=SIZES, **BOXES),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
