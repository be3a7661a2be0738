"""Bit operations."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.bitwise import RULE

CASES = [
    Case(
        "and with a mask of ones",
        "y = BitwiseAnd(i, m)",
        "int32[N,H] i",
        "int32[a,b] y",
        constants="int32 m = {7}",
        opset=18,
        gone=("BitwiseAnd",),
        ranges={"i": (-100, 100)},
    ),
    Case(
        "mask first",
        "y = BitwiseAnd(m, i)",
        "int64[N,H] i",
        "int64[a,b] y",
        constants="int64 m = {15}",
        opset=18,
        gone=("BitwiseAnd",),
        ranges={"i": (-100, 100)},
    ),
    Case(
        "not",
        "y = BitwiseNot(i)",
        "int32[N,H] i",
        "int32[a,b] y",
        opset=18,
        gone=("BitwiseNot",),
        ranges={"i": (-100, 100)},
    ),
    Case(
        "shift right",
        'u = Cast<to=13>(i) s = BitShift<direction="RIGHT">(u, m) y = Cast<to=7>(s)',
        "int64[N,H] i",
        "int64[a,b] y",
        constants="uint64 m = {3}",
        gone=("BitShift",),
        ranges={"i": (0, 200)},
    ),
    Case(
        "shift left",
        'u = Cast<to=12>(i) s = BitShift<direction="LEFT">(u, m) y = Cast<to=6>(s)',
        "int32[N,H] i",
        "int32[a,b] y",
        constants="uint32 m = {3}",
        gone=("BitShift",),
        ranges={"i": (-200, 200)},
    ),
]
NEAR_MISSES = [
    Case(
        "another mask",
        "y = BitwiseAnd(i, m)",
        "int32[N,H] i",
        "int32[a,b] y",
        constants="int32 m = {6}",
        opset=18,
        skip="2^n",
    ),
    Case(
        "unsigned",
        "y = BitwiseAnd(i, m)",
        "uint8[N,H] i",
        "uint8[a,b] y",
        constants="uint8 m = {7}",
        opset=18,
        skip="unsigned",
    ),
    Case("two values", "y = BitwiseAnd(i, j)", "int32[N,H] i, int32[N,H] j", "int32[a,b] y", opset=18, skip="constant"),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
