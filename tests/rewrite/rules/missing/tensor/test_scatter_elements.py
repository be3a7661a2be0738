"""ScatterElements with a reduction."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.scatter_elements import RULE

CASES = [
    Case(
        "add",
        'y = ScatterElements<axis=3,reduction="add">(x, i, u)',
        "float[N,8,H,W] x, int64[N,8,H,5] i, float[N,8,H,5] u",
        ranges={"i": (0, 12)},
        opset=18,
        absent=("ScatterElements",),
    ),
    Case(
        "maximum, the middle axis",
        'y = ScatterElements<axis=1,reduction="max">(x, i, u)',
        "float[N,8,H] x, int64[N,6,H] i, float[N,6,H] u",
        "float[a,b,c] y",
        ranges={"i": (-8, 7)},
        opset=18,
        absent=("ScatterElements",),
    ),
    Case(
        "product",
        'y = ScatterElements<axis=0,reduction="mul">(x, i, u)',
        "float[H] x, int64[W] i, float[W] u",
        "float[a] y",
        ranges={"i": (0, 12)},
        opset=18,
        absent=("ScatterElements",),
    ),
    Case(
        "maximum of integers",
        'y = ScatterElements<axis=1,reduction="max">(x, i, u)',
        "int64[N,8,H] x, int64[N,6,H] i, int64[N,6,H] u",
        "int64[a,b,c] y",
        ranges={"i": (-8, 7), "x": (-9, 9), "u": (-9, 9)},
        opset=18,
        absent=("ScatterElements",),
    ),
    Case(
        "minimum of integers, 8.6",
        'y = ScatterElements<axis=0,reduction="min">(x, i, u)',
        "int32[H] x, int64[W] i, int32[W] u",
        "int32[a] y",
        ranges={"i": (0, 12), "x": (-9, 9), "u": (-9, 9)},
        opset=18,
        absent=("ScatterElements",),
        target="tensorrt==8.6",
    ),
]
NEAR_MISSES = [
    Case(
        "overwriting",
        "y = ScatterElements<axis=3>(x, i, u)",
        "float[N,8,H,W] x, int64[N,8,H,5] i, float[N,8,H,5] u",
        ranges={"i": (0, 12)},
        opset=18,
    ),
    Case(
        "indices cover only a part",
        'y = ScatterElements<axis=3,reduction="add">(x, i, u)',
        "float[N,8,H,W] x, int64[N,4,H,5] i, float[N,4,H,5] u",
        ranges={"i": (0, 12)},
        opset=18,
        skip="cover",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
