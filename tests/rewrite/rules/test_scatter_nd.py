"""ScatterND with reduction add."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.scatter_nd import RULE

CASES = [
    Case(
        "rows",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8] x, int64[W,1] i, float[W,8] u",
        "float[a,b] y",
        ranges={"i": (-12, 12)},
        opset=18,
        gone=("ScatterND",),
    ),
    Case(
        "cells",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8,4] x, int64[W,2] i, float[W,4] u",
        "float[a,b,c] y",
        ranges={"i": (0, 7)},
        opset=18,
        gone=("ScatterND",),
    ),
    Case(
        "full depth",
        'y = ScatterND<reduction="add">(x, i, u)',
        "float[H,8] x, int64[W,2] i, float[W] u",
        "float[a,b] y",
        ranges={"i": (0, 7)},
        opset=18,
        gone=("ScatterND",),
    ),
]
NEAR_MISSES = [
    Case(
        "overwriting",
        "y = ScatterND(x, i, u)",
        "float[H,8] x, int64[W,1] i, float[W,8] u",
        "float[a,b] y",
        ranges={"i": (0, 12)},
        opset=18,
    ),
    Case(
        "maximum",
        'y = ScatterND<reduction="max">(x, i, u)',
        "float[H,8] x, int64[W,1] i, float[W,8] u",
        "float[a,b] y",
        ranges={"i": (0, 12)},
        opset=18,
        skip="max",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
