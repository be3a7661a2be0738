"""Einsum that older TensorRT cannot parse."""

import pytest

from tests.rewrite.harness import Case, check_case, check_near_miss
from trtconv.rewrite.rules.missing.tensor.einsum import RULE

CASES = [
    Case(
        "three operands",
        'y = Einsum<equation="bij,bjk,bkl->bil">(p, q, r)',
        "float[N,H,4] p, float[N,4,W] q, float[N,W,3] r",
        "float[a,b,c] y",
        absent=("Einsum",),
        target="tensorrt==8.6",
    ),
    Case(
        "ellipsis",
        'y = Einsum<equation="...ij,...jk->...ik">(p, q)',
        "float[N,2,H,4] p, float[N,2,4,W] q",
        "float[a,b,c,d] y",
        absent=("Einsum",),
        target="tensorrt==8.6",
    ),
    Case(
        "diagonal",
        'y = Einsum<equation="bii->bi">(p)',
        "float[N,H,H] p",
        "float[a,b] y",
        absent=("Einsum",),
        target="tensorrt==10",
    ),
    Case(
        "no arrow",
        'y = Einsum<equation="...a,...b">(p, q)',
        "float[N,H] p, float[N,W] q",
        "float[a,b,c] y",
        absent=("Einsum",),
        target="tensorrt==8.6",
    ),
    Case(
        "whole numbers",
        'y = Einsum<equation="bij,bjk->bik">(p, q)',
        "int64[N,H,4] p, int64[N,4,W] q",
        "int64[a,b,c] y",
        absent=("Einsum",),
    ),
]
NEAR_MISSES = [
    Case(
        "two plain operands",
        'y = Einsum<equation="bij,bjk->bik">(p, q)',
        "float[N,H,4] p, float[N,4,W] q",
        "float[a,b,c] y",
        target="tensorrt==8.6",
    ),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_fires(case):
    check_case(RULE, case)


@pytest.mark.parametrize("case", NEAR_MISSES, ids=str)
def test_near_miss(case):
    check_near_miss(RULE, case)
